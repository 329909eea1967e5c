// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "experiments/limits.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "experiments/core_rates.h"
#include "experiments/repeats.h"
#include "gpu/pcie.h"

namespace penstock::experiments {
namespace {

constexpr std::size_t kPiece = std::size_t{1} << 20;         // bytes per copy
constexpr std::size_t kLeastBytes = std::size_t{16} << 20;   // per thread; with its copy, more than its share of the
                                                             // caches
constexpr std::size_t kTotalBytes = std::size_t{256} << 20;  // over all threads
constexpr unsigned kRepeats = 3;
constexpr std::chrono::milliseconds kDuration{50};

/// One thread's memory: a multiple of kPiece.
class Copier {
 public:
  explicit Copier(std::size_t bytes) : from_(bytes, 1), to_(bytes, 2) {}

  /// Returns the number of bytes copied.
  std::size_t operator()() {
    std::memcpy(to_.data() + at_, from_.data() + at_, kPiece);
    at_ = (at_ + kPiece) % from_.size();
    return kPiece;
  }

 private:
  std::vector<std::uint8_t> from_, to_;
  std::size_t at_ = 0;
};

/// Total rate of `cores` threads in GB/s.
double memory_copy(unsigned cores, const std::atomic<bool>& stop) {
  const std::size_t bytes = std::max(kLeastBytes, kTotalBytes / cores / kPiece * kPiece);
  const Timing timing{kRepeats, kDuration, &stop};
  return median_of(rates_on_cores(cores, timing, [&](unsigned) { return Copier(bytes); })) / 1e9;
}

}  // namespace

Point measure_limits(unsigned cores, std::span<const gpu::Device> gpus, const std::atomic<bool>& stop) {
  Point limits;
  const auto add = [&](const char* name, double rate) {
    if (!stop.load()) limits.set(name, rate);  // else it was stopped early
  };
  add("memory_copy_one_core", memory_copy(1, stop));
  add("memory_copy_all_cores", memory_copy(cores, stop));
  const auto add_pcie = [&](const std::string& suffix, std::span<const int> devices) {
    if (stop.load()) return;
    const gpu::PcieRates rates = gpu::measure_pcie(devices);
    limits.set("pcie_to_device" + suffix, rates.to_device)
        .set("pcie_to_host" + suffix, rates.to_host)
        .set("pcie_both_each_way" + suffix, rates.both_each_way);
  };
  std::vector<int> indices;
  for (const gpu::Device& device : gpus) {
    indices.push_back(device.index);
    add_pcie(indices.size() == 1 ? "" : "_gpu" + std::to_string(device.index), std::span(indices).last(1));
  }
  for (std::size_t count = 2; count <= indices.size(); count *= 2) {
    add_pcie("_of_" + std::to_string(count), std::span(indices).first(count));
  }
  return limits;
}

std::optional<double> pcie_limit_mpps(const Point& limits, double up, double down, std::size_t gpus) {
  const std::string together = "_of_" + std::to_string(gpus);
  const bool measured = limits.find("pcie_both_each_way" + together) != nullptr;
  const auto rate = [&](const std::string& name) {
    auto value = limits.number(measured ? name + together : name);
    if (value && !measured) *value *= static_cast<double>(gpus);
    return value;
  };
  const auto both = rate("pcie_both_each_way");
  const double bytes = std::max(up, down);
  if (!both || *both <= 0 || bytes <= 0) return std::nullopt;
  const double alone = rate(up >= down ? "pcie_to_device" : "pcie_to_host").value_or(*both);
  const double against = std::min(up, down) / bytes;
  return alone / (1 + against * (alone - *both) / *both) * 1e3 / bytes;
}

}  // namespace penstock::experiments
