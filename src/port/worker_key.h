// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// What decides the worker of a frame: a hash that all packets of a flow share, both directions and ICMP errors about it
// included. It is coarser than the keys of the stack's flow table (stack/flow_table.cc), never finer:
//
//   TCP, UDP, SCTP                     addresses, protocol, ports
//   IP in IP, GRE, UDP of tunnel ports addresses alone, so that the flows inside are not split by the tunnel's ports
//   ICMPv4 destination unreachable     the TCP or UDP flow that it quotes
//   other protocols                    addresses, protocol
//   fragments                          by their datagram (worker_chooser.h): only the first one has the ports

#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>

#include "base/ip_address.h"
#include "packet/flow_hash.h"
#include "packet/link_type.h"

namespace penstock::port {

using Bytes = std::span<const std::uint8_t>;

/// Tells datagrams apart, as the stack's reassembly does.
struct DatagramKey {
  Ipv6Address source, destination;  // IPv4 addresses in the lower 32 bits of `low`
  std::uint32_t id = 0;
  std::array<std::uint16_t, 8> vlan_ids{};
  std::uint8_t ip_version = 0;
  std::uint8_t protocol = 0;  // of IPv4; IPv6 tells datagrams apart without
  friend bool operator==(const DatagramKey&, const DatagramKey&) = default;
};

struct Fragment {
  DatagramKey key;
  std::uint32_t offset = 0;        // bytes
  bool more = false;               // follow
  bool wrong_checksum = false;     // of its IPv4 header: hosts discard it
  std::uint8_t next_protocol = 0;  // what the datagram's payload begins with
  Bytes data;                      // borrowed from the frame
};

struct WorkerKey {
  /// Of the flow; of a fragment of its datagram's addresses, unless `tells_flow`. 0: not IP.
  std::uint32_t hash = 0;
  bool is_fragment = false;
  bool tells_flow = true;
};

/// Writes to `fragment` where the frame is one.
[[nodiscard]] WorkerKey worker_key_of(Bytes frame, std::uint32_t wire_length, LinkType link,
                                      Fragment& fragment) noexcept;

/// The hash of the flow that a datagram belongs to, by the bytes with which its payload begins; nothing where they end
/// before that shows.
[[nodiscard]] std::optional<std::uint32_t> flow_hash_of(const Fragment& any, Bytes payload) noexcept;

/// That of the datagram's addresses alone.
[[nodiscard]] std::uint32_t address_hash_of(const DatagramKey& key) noexcept;

/// 0 .. workers - 1; 0 for a hash of 0, which is what is not IP.
[[nodiscard]] constexpr unsigned worker_of_hash(std::uint32_t hash, unsigned workers) noexcept {
  if (hash == 0) return 0;
  return static_cast<unsigned>(std::uint64_t{flow_share(hash, FlowShare::worker)} * workers >> 32);
}

/// Ports of tunnels over UDP that the stack decodes by default: Teredo, VXLAN, VXLAN-GPE, Geneve, VXLAN as Linux had
/// it.
[[nodiscard]] constexpr bool is_tunnel_port(std::uint16_t port) noexcept {
  return port == 3544 || port == 4789 || port == 4790 || port == 6081 || port == 8472;
}

}  // namespace penstock::port
