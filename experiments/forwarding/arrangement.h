// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The points of the experiment `forwarding`, the chain files that they need, and who works on which cores.
//
//   sweep         rate, as much as possible; latency, at a share of that; limits, what the interfaces themselves allow
//   system        linux, af_packet, af_xdp; of limits, send or receive with a port: send_af_packet, …
//   processor     cpu, gpu; cpu for Linux
//   chain         router, firewall-router; none for limits
//   size          of frames, with FCS
//   workers       of Penstock; the cores on which Linux receives; the queues of each interface
//   load_percent  of latency: of the system's rate

#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/cpu_list.h"
#include "experiments/forwarding/network.h"
#include "experiments/point.h"

namespace penstock::experiments {

/// `threads`: the most workers that a point may use, and as many cores for the load.
[[nodiscard]] std::vector<Point> forwarding_points(bool quick, unsigned threads);

/// Who works where. Each core has one task, if there are enough of them.
struct ForwardingCores {
  ReceiveCores receive;        // Linux's packets, in the gateway and in the server
  CpuList workers, generator;  // Penstock's threads in the gateway and in the client; empty: where the system likes
  unsigned generators = 1;     // worker threads of the load
};
[[nodiscard]] ForwardingCores forwarding_cores(unsigned workers, const CpuList& usable);

/// Files that chains of the gateway name.
struct GatewayFiles {
  std::string routes, neighbours, rules;
};

/// Penstock in the gateway, or for the limit `receive` a chain that only receives.
[[nodiscard]] std::string gateway_chain(const Point& point, const ForwardingCores& cores, const GatewayFiles& files,
                                        const std::string& gpus);

/// The load, from the client. `port`: the kind of port that sends it. Without a rate, as much as possible.
[[nodiscard]] std::string load_chain(const Point& point, const char* port, const ForwardingCores& cores,
                                     std::optional<double> mpps);

/// The number of rules of the chain firewall-router.
inline constexpr unsigned kForwardingRules = 1000;

}  // namespace penstock::experiments
