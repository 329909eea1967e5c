// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The symmetric flow hash. Both directions of a connection have the same value, and so have all fragments of a packet,
// so that they reach the same worker (RSS), and ECMP keeps a flow on one path. Each use derives its own hash from it.

#pragma once

#include <cstdint>

#include "base/host_device.h"
#include "packet/packet.h"

namespace penstock {

/// A 64-bit finaliser (MurmurHash3's fmix64): every input bit affects every output bit.
PENSTOCK_HOST_DEVICE constexpr std::uint64_t mix64(std::uint64_t x) noexcept {
  x ^= x >> 33;
  x *= 0xff51afd7ed558ccdULL;
  x ^= x >> 33;
  x *= 0xc4ceb9fe1a85ec53ULL;
  x ^= x >> 33;
  return x;
}

/// Folds an IPv6 address into the 64 bits that `symmetric_hash` takes. IPv4 addresses are used as they are.
[[nodiscard]] PENSTOCK_HOST_DEVICE constexpr std::uint64_t fold_ipv6(std::uint64_t high, std::uint64_t low) noexcept {
  return mix64(high) ^ low;
}
[[nodiscard]] PENSTOCK_HOST_DEVICE constexpr std::uint64_t with_port(std::uint64_t address,
                                                                     std::uint16_t port) noexcept {
  return address ^ std::uint64_t{port} << 40;
}

/// The hash of two endpoints, in either order, and a protocol.
[[nodiscard]] PENSTOCK_HOST_DEVICE constexpr std::uint32_t symmetric_hash(std::uint64_t one, std::uint64_t other,
                                                                          std::uint8_t protocol) noexcept {
  const std::uint64_t a = mix64(one + 0x9e3779b97f4a7c15ULL);
  const std::uint64_t b = mix64(other + 0x9e3779b97f4a7c15ULL);
  return static_cast<std::uint32_t>(mix64(a + b + protocol) >> 32);
}

/// The hash over addresses, protocol and ports; without protocol and ports for fragments, since only the first one has
/// the ports; 0 if the packet is not IP. Independent of where the capture truncated the frame, if the ports are
/// present. Symmetric, because it combines the mixed endpoints by addition.
[[nodiscard]] PENSTOCK_HOST_DEVICE inline std::uint32_t flow_hash(PacketView view) noexcept {
  const PacketLayout& layout = view.layout();
  if (!layout.has(PacketLayout::kNetworkHeader)) return 0;
  std::uint64_t source = 0;
  std::uint64_t destination = 0;
  if (layout.network == NetworkLayer::ipv4) {
    source = view.ipv4().source.value();
    destination = view.ipv4().destination.value();
  } else if (layout.network == NetworkLayer::ipv6) {
    const Ipv6Header& ip = view.ipv6();
    source = fold_ipv6(ip.source[0].value(), ip.source[1].value());
    destination = fold_ipv6(ip.destination[0].value(), ip.destination[1].value());
  } else {
    return 0;
  }
  std::uint8_t protocol = layout.transport;
  if (layout.has(PacketLayout::kFragment)) {
    protocol = 0;
  } else if (layout.has(PacketLayout::kPorts)) {
    source = with_port(source, view.udp().source_port.value());
    destination = with_port(destination, view.udp().destination_port.value());
  }
  return symmetric_hash(source, destination, protocol);
}

/// The uses of the flow hash. The values are salts: the first fractional digits of √2 and √3.
enum class FlowShare : std::uint64_t { worker = 0x6a09e667f3bcc908ULL, next_hop = 0xbb67ae8584caa73bULL };

/// The hash for distributing flows for `use`. It is independent of that for other uses; otherwise, the flows of one
/// worker would use few of the next hops.
[[nodiscard]] PENSTOCK_HOST_DEVICE constexpr std::uint32_t flow_share(std::uint32_t flow_hash, FlowShare use) noexcept {
  return static_cast<std::uint32_t>(mix64(flow_hash ^ static_cast<std::uint64_t>(use)) >> 32);
}

}  // namespace penstock
