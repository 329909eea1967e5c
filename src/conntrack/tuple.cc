// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "conntrack/tuple.h"

#include <algorithm>
#include <utility>

#include "base/keyed_hash.h"
#include "conntrack/icmp.h"
#include "conntrack/quoted_core.h"
#include "packet/ip.h"
#include "packet/transport.h"

namespace penstock::conntrack {
namespace {

std::uint16_t be16(Bytes bytes, std::size_t at) noexcept {
  return static_cast<std::uint16_t>(bytes[at] << 8 | bytes[at + 1]);
}

/// Only version 1 (RFC 2637, PPTP) has something to tell connections apart by.
bool read_gre(Bytes transport, Tuple& tuple) noexcept {
  constexpr std::uint16_t kPpp = 0x880b;
  constexpr std::size_t kCallEnd = 8;
  if (transport.size() < kCallEnd || (be16(transport, 0) & GreHeader::kVersionMask) != 1) return true;
  if (be16(transport, 2) != kPpp) return false;
  tuple.destination_port = be16(transport, 6);
  return true;
}

std::uint64_t hash_of(const Ipv6Address& address, std::uint16_t port, std::uint64_t seed) noexcept {
  return mix_product(mix_product(address.high ^ seed, address.low), seed + port);
}

}  // namespace

bool read_ports(Bytes transport, std::uint8_t protocol, Tuple& tuple) noexcept {
  tuple.protocol = protocol;
  if (begins_with_ports(protocol)) {
    if (transport.size() < 4) return false;
    tuple.source_port = be16(transport, 0);
    tuple.destination_port = be16(transport, 2);
    return true;
  }
  if (is_icmp(tuple)) {
    if (transport.size() < sizeof(IcmpHeader)) return false;
    tuple.source_port = be16(transport, 4);
    tuple.destination_port = be16(transport, 0);
    return true;
  }
  return protocol != ip_protocol::kGre || read_gre(transport, tuple);
}

bool are_inverse(const Tuple& a, const Tuple& b) noexcept {
  if (a.source != b.destination || a.destination != b.source || a.protocol != b.protocol ||
      a.ip_version != b.ip_version) {
    return false;
  }
  if (!is_icmp(a)) return a.source_port == b.destination_port && a.destination_port == b.source_port;
  const auto answer = icmp_counterpart(a.protocol, static_cast<std::uint8_t>(a.destination_port >> 8));
  return a.source_port == b.source_port && answer && b.destination_port == (*answer << 8 | (a.destination_port & 0xff));
}

std::optional<Tuple> inverse_of(const Tuple& tuple) noexcept {
  Tuple inverse = tuple;
  std::swap(inverse.source, inverse.destination);
  if (is_icmp(tuple)) {
    const auto type = static_cast<std::uint8_t>(tuple.destination_port >> 8);
    const std::optional<std::uint8_t> answer = icmp_counterpart(tuple.protocol, type);
    if (!answer) return std::nullopt;
    inverse.destination_port = static_cast<std::uint16_t>(*answer << 8 | (tuple.destination_port & 0xff));
  } else {
    std::swap(inverse.source_port, inverse.destination_port);
  }
  return inverse;
}

std::optional<Tuple> read_quoted(Bytes quoted, std::uint8_t ip_version) noexcept {
  Tuple tuple;
  tuple.ip_version = ip_version;
  std::uint8_t protocol = 0;
  std::size_t at = 0;
  if (ip_version == 4) {
    if (quoted.size() < sizeof(Ipv4Header)) return std::nullopt;
    const auto& ip = *reinterpret_cast<const Ipv4Header*>(quoted.data());
    if ((ip.fragment.value() & Ipv4Header::kOffsetMask) != 0) return std::nullopt;
    tuple.source.low = ip.source.value();
    tuple.destination.low = ip.destination.value();
    protocol = ip.protocol;
    at = ip.header_length();
  } else {
    if (quoted.size() < sizeof(Ipv6Header)) return std::nullopt;
    const auto& ip = *reinterpret_cast<const Ipv6Header*>(quoted.data());
    tuple.source = ip.source_address();
    tuple.destination = ip.destination_address();
    protocol = ip.next_header;
    at = find_quoted_transport(quoted.data(), quoted.size(), protocol);
    if (at == 0) return std::nullopt;
  }
  // An extension header may reach beyond what is quoted: enough for protocols without ports.
  if (ip_version == 4 && at > quoted.size()) return std::nullopt;
  if (!read_ports(quoted.subspan(std::min(at, quoted.size())), protocol, tuple)) return std::nullopt;
  return tuple;
}

std::uint32_t hash_of(const Tuple& tuple, std::uint64_t seed) noexcept {
  std::uint64_t kind = std::uint64_t{tuple.protocol} << 8 | tuple.ip_version;
  std::uint16_t source_port = tuple.source_port, destination_port = tuple.destination_port;
  if (is_icmp(tuple)) {
    // The identifier stays where it is in a reply, and the type changes: take the smaller one of request and reply.
    const auto type = static_cast<std::uint8_t>(destination_port >> 8);
    const std::uint8_t canonical = std::min(type, icmp_counterpart(tuple.protocol, type).value_or(type));
    kind |= std::uint64_t{canonical} << 24 | std::uint64_t{destination_port & 0xffU} << 16;
    destination_port = source_port;
  }
  const std::uint64_t both =
      hash_of(tuple.source, source_port, seed) + hash_of(tuple.destination, destination_port, seed);
  return static_cast<std::uint32_t>(mix_product(both, kind ^ seed));
}

}  // namespace penstock::conntrack
