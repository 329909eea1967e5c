// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The hash that selects a frame's worker. All packets of a flow share it, in both directions, with ICMP errors about
// the flow. For packets that begin or continue flows in the stack's flow table (stack/flow_table.cc), it is coarser
// than that table's keys, never finer; ICMPv6 errors, which have flows of their own there, are the exception:
//
//   TCP, UDP, SCTP                     addresses, protocol, ports
//   IP in IP, GRE, UDP tunnel ports    addresses only, so that a tunnel's ports do not split the flows inside
//   ICMP and ICMPv6 errors             the flow of the packet that they quote
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

/// Identifies a datagram, as in the stack's IP reassembly.
struct DatagramKey {
  Ipv6Address source, destination;  // IPv4 addresses in the lower 32 bits of `low`
  std::uint32_t id = 0;
  std::array<std::uint16_t, 8> vlan_ids{};
  std::uint8_t ip_version = 0;
  std::uint8_t protocol = 0;  // IPv4 only; IPv6 does not use it to identify datagrams
  friend bool operator==(const DatagramKey&, const DatagramKey&) = default;
};

struct Fragment {
  DatagramKey key;
  std::uint32_t offset = 0;        // in bytes
  bool more = false;               // more fragments follow
  bool wrong_checksum = false;     // wrong IPv4 header checksum: hosts discard the fragment
  std::uint8_t next_protocol = 0;  // the protocol at the start of the datagram's payload
  Bytes data;                      // borrowed from the frame
};

struct WorkerKey {
  /// Hash of the flow; of the datagram's addresses if `tells_flow` is false; 0 if the frame is not IP.
  std::uint32_t hash = 0;
  bool is_fragment = false;
  bool tells_flow = true;
};

/// Writes `fragment` if the frame is a fragment.
[[nodiscard]] WorkerKey worker_key_of(Bytes frame, std::uint32_t wire_length, LinkType link,
                                      Fragment& fragment) noexcept;

/// The hash of a datagram's flow, from the first bytes of its payload; empty if these are too few to identify the flow.
[[nodiscard]] std::optional<std::uint32_t> flow_hash_of(const Fragment& any, Bytes payload) noexcept;

/// The hash of the datagram's addresses only.
[[nodiscard]] std::uint32_t address_hash_of(const DatagramKey& key) noexcept;

/// 0 .. workers - 1. Hash 0 (not IP) gives worker 0.
[[nodiscard]] constexpr unsigned worker_of_hash(std::uint32_t hash, unsigned workers) noexcept {
  if (hash == 0) return 0;
  return static_cast<unsigned>(std::uint64_t{flow_share(hash, FlowShare::worker)} * workers >> 32);
}

/// Ports of the UDP tunnels that the stack decodes by default: Teredo, VXLAN, VXLAN-GPE, Geneve, and the port that
/// Linux used for VXLAN before IANA assigned one.
[[nodiscard]] constexpr bool is_tunnel_port(std::uint16_t port) noexcept {
  return port == 3544 || port == 4789 || port == 4790 || port == 6081 || port == 8472;
}

}  // namespace penstock::port
