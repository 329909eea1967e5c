// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "port/live/dpdk/environment.h"

#include <dlfcn.h>

#include <algorithm>
#include <filesystem>
#include <mutex>
#include <optional>
#include <utility>

#include "base/log.h"
#include "base/thread_placement.h"
#include "base/trusted_folder.h"

namespace penstock::port::dpdk {

namespace {

/// Where the module may be: where the system looks, and `lib` in a folder above the program, as when it is installed
/// and in a build folder.
std::vector<std::string> candidates() {
  namespace fs = std::filesystem;
  std::vector<std::string> all{kModuleFile};
  std::error_code error;
  const fs::path program = fs::read_symlink("/proc/self/exe", error);
  if (error) return all;
  for (fs::path above = program.parent_path(); above != above.root_path(); above = above.parent_path()) {
    if (is_trusted_folder(above / "lib") && fs::exists(above / "lib" / kModuleFile, error))
      all.push_back(above / "lib" / kModuleFile);
  }
  return all;
}

/// The error is why it cannot be loaded.
tl::expected<const Module*, std::string> load() {
  std::string reason;
  for (const std::string& candidate : candidates()) {
    void* const library = ::dlopen(candidate.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (library == nullptr) {
      reason = ::dlerror();
      continue;
    }
    auto* const function = reinterpret_cast<ModuleFunction*>(::dlsym(library, "penstock_dpdk_module"));
    const Module* const module = function != nullptr ? function() : nullptr;
    if (module != nullptr && module->version == Module::kVersion) return module;
    reason = candidate + " is of another version";
  }
  return tl::unexpected(std::move(reason));
}

struct Environment {
  std::mutex lock;
  std::vector<const PortArguments*> ports;                         // of participants, in their order
  std::optional<tl::expected<const Module*, std::string>> module;  // empty: not yet loaded
  std::vector<std::string> started;                                // the arguments; empty: not started
  std::string failure;                                             // why it could not start
};

Environment& environment() {
  static Environment the;
  return the;
}

Result<const Module*> module_for(const PortArguments& port) {
  Environment& the = environment();
  if (!the.module) the.module = load();
  if (*the.module) return **the.module;
  return failure(
      {port.device_place, "DPDK cannot be used", the.module->error(),
       "the package penstock-dpdk (apt install penstock-dpdk); or, for a program that was built from source, "
       "a build with libdpdk-dev and PENSTOCK_DPDK=ON"});
}

Errors check_together(const PortArguments& port) {
  const Environment& the = environment();
  if (!the.started.empty()) return check_started(port, the.started);
  const auto self = std::ranges::find(the.ports, &port);
  return check_arguments(port, std::span(the.ports.begin(), self));
}

/// What to do about DPDK's error, if that is known.
std::string hint_of(const std::string& reason) {
  if (reason.find("hugepage") != std::string::npos || reason.find("memory") != std::string::npos)
    return "free huge pages (dpdk-hugepages.py --setup 1G), or eal: [--no-huge] for devices that need none";
  return "";
}

}  // namespace

Participant::Participant(PortArguments arguments) : arguments_(std::move(arguments)) {
  const std::lock_guard lock(environment().lock);
  environment().ports.push_back(&arguments_);
}

Participant::~Participant() {
  const std::lock_guard lock(environment().lock);
  std::erase(environment().ports, &arguments_);
}

Errors Participant::check() const {
  const std::lock_guard lock(environment().lock);
  if (auto module = module_for(arguments_); !module) return module.error();
  return check_together(arguments_);
}

Result<const Module*> Participant::start() const {
  Environment& the = environment();
  const std::lock_guard lock(the.lock);
  auto module = module_for(arguments_);
  if (!module) return module;
  if (Errors errors = check_together(arguments_); !errors.empty()) return failure(std::move(errors));
  if (the.started.empty()) {
    constexpr unsigned kMostCpus = 128;  // DPDK's limit, as it is packaged
    CpuList cpus = cpus_of_this_thread();
    std::erase_if(cpus, [](unsigned cpu) { return cpu >= kMostCpus; });
    if (cpus.empty()) cpus = {0};
    the.started = eal_arguments(the.ports, cpus);
    const Module::Started started = (*module)->start(the.started);
    the.failure = started.failure;
    if (!started.warnings.empty()) log_warning("DPDK: {}", started.warnings);
  }
  // It cannot be started again.
  if (!the.failure.empty())
    return failure({arguments_.device_place, "cannot start DPDK", the.failure, hint_of(the.failure)});
  return module;
}

}  // namespace penstock::port::dpdk
