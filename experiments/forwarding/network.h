// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The network of the experiment `forwarding`: three network namespaces, and what their interfaces have counted.
//
//    penstock-PID-client      penstock-PID-gateway      penstock-PID-server
//       eth0 ════ veth ════ lan                 wan ════ veth ════ eth0
//
// Packets go from 10.0.1.0/24 to 203.0.113.0/24, by the next hop 10.0.2.2, whose MAC address nobody has: the server
// drops them as early as Linux can. There is no other traffic.

#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/cpu_list.h"
#include "base/error.h"
#include "experiments/namespaces.h"
#include "experiments/workload.h"
#include "packet/ethernet.h"
#include "port/live/file_descriptor.h"

namespace penstock::experiments {

/// Where Linux receives packets (RPS): the cores to which it takes them by the hash of their flow.
struct ReceiveCores {
  CpuList gateway, server;
};

class ForwardingNetwork {
 public:
  static constexpr const char* kHostInterface = "eth0";
  static constexpr const char* kLan = "lan";
  static constexpr const char* kWan = "wan";
  static constexpr MacAddress kGatewayMac{{2, 0, 0, 0, 0, 2}};  // of `lan`; the destination of the generator's frames
  static constexpr const char* kLanMac = "02:00:00:00:00:02";
  static constexpr const char* kWanMac = "02:00:00:00:02:01";
  static constexpr const char* kSources = "10.0.1.0/24";
  static constexpr const char* kDestinations = "203.0.113.0/24";  // not of the range that synthetic rules are about

  /// Fails without the privileges, or without `ip`. `queues`: of each interface, to receive and to send. Borrows the
  /// folder.
  [[nodiscard]] static Result<std::unique_ptr<ForwardingNetwork>> make(const Workplace& folder, unsigned queues,
                                                                       const ReceiveCores& cores);

  [[nodiscard]] unsigned queues() const noexcept { return queues_; }
  [[nodiscard]] static std::string client() { return NetworkNamespaces::name("client"); }
  [[nodiscard]] static std::string gateway() { return NetworkNamespaces::name("gateway"); }
  [[nodiscard]] static std::string server() { return NetworkNamespaces::name("server"); }

  /// The gateway's routes and neighbours, as `ip route` and `ip neigh` print them.
  [[nodiscard]] static std::string routes();
  [[nodiscard]] static std::string neighbours();

  /// Whether Linux itself forwards in the gateway.
  [[nodiscard]] Result<void> set_forwarding(bool on) const;

  /// Packets since the interfaces were made. veth counts a packet once for both of its ends: as sent and received if
  /// the receiving system took it, and as dropped by the sender if that system's queue was full.
  struct Counters {
    std::uint64_t to_gateway = 0, dropped_at_gateway = 0;  // from the client
    std::uint64_t to_server = 0, dropped_at_server = 0;    // from the gateway
  };
  [[nodiscard]] Result<Counters> counters() const;

 private:
  ForwardingNetwork(std::unique_ptr<NetworkNamespaces> namespaces, unsigned queues)
      : namespaces_(std::move(namespaces)), queues_(queues) {}
  [[nodiscard]] Result<void> set_up(const ReceiveCores& cores);
  [[nodiscard]] Result<void> receive_on(const std::string& name, const char* interface, const CpuList& cores) const;

  const std::unique_ptr<NetworkNamespaces> namespaces_;
  const unsigned queues_;
  port::FileDescriptor client_counters_, gateway_counters_;  // /proc/net/dev of their namespaces
};

}  // namespace penstock::experiments
