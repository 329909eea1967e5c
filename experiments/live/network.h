// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The network of the experiment `live`: two network namespaces, joined by a pair of veth interfaces, and iPerf3 between
// them.
//
//    namespace penstock-PID-client        namespace penstock-PID-server
//       iperf3 --client ── eth0 ════ veth ════ eth0 ── iperf3 --server
//                                               └── the system captures a copy here

#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "base/error.h"
#include "experiments/namespaces.h"
#include "experiments/workload.h"

namespace penstock::experiments {

class LiveNetwork {
 public:
  /// Fails without the privileges, `ip` or `iperf3`. Borrows the folder for what programs print.
  [[nodiscard]] static Result<std::unique_ptr<LiveNetwork>> make(const Workplace& folder);

  /// Of the server, and the name of its interface.
  [[nodiscard]] const std::string& server() const noexcept { return server_; }
  static constexpr const char* kInterface = "eth0";

  struct Sent {
    double mbps = 0;           // TCP payload that the client sent
    double received_mbps = 0;  // and the server received
  };
  /// TCP from the client to the server. `rate`: in Mbit/s, or "unlimited". Calls `look` many times a second. Returns
  /// early, with an error, if `stop` is set.
  [[nodiscard]] Result<Sent> send(const std::string& rate, std::chrono::nanoseconds time, const std::atomic<bool>& stop,
                                  const std::function<void()>& look);

 private:
  LiveNetwork(const Workplace& folder, std::unique_ptr<NetworkNamespaces> namespaces);
  [[nodiscard]] Result<void> set_up();

  const Workplace& folder_;
  const std::unique_ptr<NetworkNamespaces> namespaces_;
  const std::string client_, server_;
};

}  // namespace penstock::experiments
