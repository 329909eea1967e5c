// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// A `penstock proxy` in a process of its own. Owns it.

#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "base/error.h"
#include "experiments/program.h"
#include "experiments/sharing/started.h"
#include "experiments/workload.h"

namespace penstock::experiments {

struct ProxySettings {
  int gpu = 0;
  std::string scheduler;        // "best-effort"
  double bits_per_second = 0;   // what the GPU carries, for `fixed`; 0: the proxy's default
  std::string multiprocessors;  // "green-contexts"; "": the proxy's default
  unsigned on_device_mib = 0;   // most at a time; 0: the proxy's default
  Words before;                 // the program, such as those that make it a client of MPS
  friend bool operator==(const ProxySettings&, const ProxySettings&) = default;
};

/// A number that a proxy's status has of the tenant of this name (src/proxy/README.md). Empty: there is none.
[[nodiscard]] std::optional<double> tenant_number(const nlohmann::json& status, const std::string& tenant,
                                                  const char* key);

class RunningProxy {
 public:
  /// Returns when it listens. `program`: the words before the socket.
  [[nodiscard]] static Result<std::unique_ptr<RunningProxy>> start(const Words& program, const ProxySettings& settings,
                                                                   const Workplace& folder,
                                                                   const std::atomic<bool>& stop);

  [[nodiscard]] const std::string& socket() const noexcept { return socket_; }
  [[nodiscard]] const ProxySettings& settings() const noexcept { return settings_; }
  /// Whether it still runs.
  [[nodiscard]] bool runs() noexcept { return !program_.ended_within({}); }
  /// What `penstock proxy status --json` prints. Empty: it does not answer.
  [[nodiscard]] std::optional<nlohmann::json> status() const;
  /// Asks for the status until `find` has a value of it, which it returns. Empty: none within some ten seconds, or
  /// `stop` is set.
  template <typename Find>
  [[nodiscard]] auto wait_for(const std::atomic<bool>& stop, Find find) const -> decltype(find(nlohmann::json())) {
    constexpr std::chrono::milliseconds kLook{10};
    constexpr int kMostLooks = 1000;
    for (int look = 0; look < kMostLooks && !stop.load(); ++look) {
      if (const auto now = status()) {
        if (auto found = find(*now)) return found;
      }
      std::this_thread::sleep_for(kLook);
    }
    return std::nullopt;
  }
  /// Waits until the tenants that have ended have given back what they had: their memory on the GPU takes a moment.
  /// False: some have not.
  [[nodiscard]] bool wait_until_empty(const std::atomic<bool>& stop) const;

 private:
  RunningProxy(Program program, std::string name, std::string socket, ProxySettings settings)
      : program_(std::move(program)),
        program_name_(std::move(name)),
        socket_(std::move(socket)),
        settings_(std::move(settings)) {}

  Program program_;
  const std::string program_name_;
  const std::string socket_;
  const ProxySettings settings_;
};

}  // namespace penstock::experiments
