// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "gpu/nvml.h"

#include <dlfcn.h>

#include <array>
#include <memory>

namespace penstock::gpu {
namespace {

struct LibraryDeleter {
  void operator()(void* library) const noexcept { dlclose(library); }
};

/// Initialises NVML, and shuts it down at the end. The function signatures are copied from nvml.h, which is in none of
/// our packages. NVIDIA keeps them stable (0 is success, a device is an opaque pointer).
class Nvml {
 public:
  Nvml() : library_(dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL)) {
    const auto init = find<int()>("nvmlInit_v2");
    ready_ = init != nullptr && init() == 0;
  }
  Nvml(const Nvml&) = delete;
  Nvml& operator=(const Nvml&) = delete;
  ~Nvml() {
    if (!ready_) return;
    if (const auto shutdown = find<int()>("nvmlShutdown")) shutdown();
  }

  [[nodiscard]] bool ready() const noexcept { return ready_; }

  template <typename Function>
  [[nodiscard]] Function* find(const char* name) const noexcept {
    return library_ == nullptr ? nullptr : reinterpret_cast<Function*>(dlsym(library_.get(), name));
  }

 private:
  std::unique_ptr<void, LibraryDeleter> library_;
  bool ready_ = false;
};

}  // namespace

std::string nvidia_driver_version() {
  const Nvml nvml;
  const auto version = nvml.find<int(char*, unsigned)>("nvmlSystemGetDriverVersion");
  std::array<char, 96> text{};
  if (!nvml.ready() || version == nullptr || version(text.data(), text.size()) != 0) return {};
  return text.data();
}

std::optional<PcieLink> pcie_link(const std::string& pci_bus_id) {
  const Nvml nvml;
  const auto by_bus_id = nvml.find<int(const char*, void**)>("nvmlDeviceGetHandleByPciBusId_v2");
  const auto generation = nvml.find<int(void*, unsigned*)>("nvmlDeviceGetMaxPcieLinkGeneration");
  const auto width = nvml.find<int(void*, unsigned*)>("nvmlDeviceGetMaxPcieLinkWidth");
  if (!nvml.ready() || by_bus_id == nullptr || generation == nullptr || width == nullptr) return std::nullopt;

  void* device = nullptr;
  PcieLink link;
  if (by_bus_id(pci_bus_id.c_str(), &device) != 0 || generation(device, &link.generation) != 0 ||
      width(device, &link.width) != 0)
    return std::nullopt;
  return link;
}

struct Utilization::Handle {
  struct Rates {  // nvmlUtilization_t
    unsigned gpu, memory;
  };
  Nvml nvml;
  int (*rates)(void*, Rates*) = nullptr;
  void* device = nullptr;
};

Utilization::Utilization(const std::string& pci_bus_id) : handle_(std::make_unique<Handle>()) {
  const auto by_bus_id = handle_->nvml.find<int(const char*, void**)>("nvmlDeviceGetHandleByPciBusId_v2");
  if (!handle_->nvml.ready() || by_bus_id == nullptr || by_bus_id(pci_bus_id.c_str(), &handle_->device) != 0) return;
  handle_->rates = handle_->nvml.find<int(void*, Handle::Rates*)>("nvmlDeviceGetUtilizationRates");
}

Utilization::~Utilization() = default;

std::optional<unsigned> Utilization::percent() const noexcept {
  Handle::Rates rates{};
  if (handle_->rates == nullptr || handle_->rates(handle_->device, &rates) != 0) return std::nullopt;
  return rates.gpu;
}

}  // namespace penstock::gpu
