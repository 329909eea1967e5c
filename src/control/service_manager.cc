// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "control/service_manager.h"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <systemd/sd-daemon.h>

#include <chrono>
#include <cstdint>
#include <string_view>

#include "base/error.h"
#include "base/system_file.h"

namespace penstock::control {

namespace {

/// A variable is one line. systemd ignores messages of more than 4096 bytes; escaping makes at most four of one.
std::string status(std::string_view text) {
  constexpr std::size_t kMostBytes = 800;
  return "STATUS=" + printable(text.substr(0, kMostBytes)) + (text.size() > kMostBytes ? "..." : "");
}

/// If the service manager cannot be reached, it has no use for an error either.
void notify(const std::string& message) { static_cast<void>(::sd_notify(0, message.c_str())); }

std::uint64_t monotonic_us() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();  // CLOCK_MONOTONIC, as systemd expects
  return static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::microseconds>(now).count());
}

/// systemd has all processes of a service in one control group, and takes none from elsewhere for its main process.
bool is_in_this_service(pid_t process) {
  const std::string own = system_file("/proc/self/cgroup");
  return !own.empty() && own == system_file(fmt::format("/proc/{}/cgroup", process));
}

}  // namespace

std::string status_line(const ReloadOutcome& outcome) {
  using Result = ReloadOutcome::Result;
  const std::string_view what = outcome.what == ReloadOutcome::What::rollback ? "Rollback" : "Reload";
  const auto at = fmt::gmtime(std::chrono::system_clock::to_time_t(outcome.at));
  const std::string first = outcome.errors.empty() ? "" : ": " + to_string(outcome.errors.front());
  switch (outcome.result) {
    case Result::refused:
    case Result::failed:
      return fmt::format("{} at {:%Y-%m-%d %H:%M:%S} UTC {}, the former version stays in use{}", what, at,
                         name_of_result(outcome), first);
    case Result::unchanged: return fmt::format("{} at {:%Y-%m-%d %H:%M:%S} UTC: nothing has changed", what, at);
    case Result::in_use: break;
  }
  return fmt::format("{} at {:%Y-%m-%d %H:%M:%S} UTC is in use{}", what, at, first);
}

void ServiceManager::starting() const { notify(status("Starting")); }

void ServiceManager::ready(const config::LoadedChain& loaded) {
  is_ready_ = true;
  std::string ports;
  for (const run::NamedPort& port : loaded.chain.ports) ports += (ports.empty() ? "" : ", ") + port.name;
  notify("READY=1\n" + status("Running on the ports " + ports));
}

void ServiceManager::reload_begins() const {
  if (is_ready_) notify(fmt::format("RELOADING=1\nMONOTONIC_USEC={}\n{}", monotonic_us(), status("Reloading")));
}

void ServiceManager::reload_ended(const ReloadOutcome& outcome) {
  if (is_ready_) notify("READY=1\n" + status(status_line(outcome)));
}

void ServiceManager::hand_over(pid_t successor) {
  if (!is_ready_ || !is_in_this_service(successor)) return;
  // As "yours" follows, systemd reads this before anything that the successor says.
  notify(fmt::format("MAINPID={}\n{}", successor, status(fmt::format("Process {} continues the run", successor))));
  is_ready_ = false;
}

void ServiceManager::stopping() {
  if (!is_ready_) return;
  is_ready_ = false;
  notify("STOPPING=1\n" + status("Stopping: packets that were read are finished"));
}

}  // namespace penstock::control
