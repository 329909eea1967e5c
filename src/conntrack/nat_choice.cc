// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "conntrack/nat_choice.h"

#include <algorithm>
#include <array>
#include <bit>

#include "base/jenkins_hash.h"
#include "packet/ip.h"

namespace penstock::conntrack {
namespace {

using Words = std::array<std::uint32_t, 4>;

/// In the order of the kernel's union nf_inet_addr, where an IPv4 address comes first.
Words words_of(const Ipv6Address& address, std::uint8_t ip_version) noexcept {
  if (ip_version == 4) return {static_cast<std::uint32_t>(address.low), 0, 0, 0};
  return {static_cast<std::uint32_t>(address.high >> 32), static_cast<std::uint32_t>(address.high),
          static_cast<std::uint32_t>(address.low >> 32), static_cast<std::uint32_t>(address.low)};
}

Ipv6Address address_of(const Words& words, std::uint8_t ip_version) noexcept {
  if (ip_version == 4) return {0, words[0]};
  return {std::uint64_t{words[0]} << 32 | words[1], std::uint64_t{words[2]} << 32 | words[3]};
}

/// A word in network byte order as a little-endian machine reads it: what the kernel hashes.
std::uint32_t as_hashed(std::uint32_t word) noexcept { return __builtin_bswap32(word); }

std::uint32_t hash_of(const Words& words, std::uint32_t initial) noexcept {
  return jenkins_hash({reinterpret_cast<const std::uint8_t*>(words.data()), sizeof words}, initial);
}

const Ipv6Address& end_of(const Tuple& tuple, NatKind kind) noexcept {
  return kind == NatKind::source ? tuple.source : tuple.destination;
}

}  // namespace

NatRange resolve_netmap(const NatRange& range, const Tuple& tuple, NatKind kind) noexcept {
  if (!range.has(NatRange::kNetmap) || !range.has(NatRange::kAddresses)) return range;
  NatRange resolved = range;
  const Ipv6Address &first = range.first_address, &last = range.last_address, &own = end_of(tuple, kind);
  const Ipv6Address host{first.high ^ last.high, first.low ^ last.low};
  resolved.first_address = {(own.high & host.high) | (first.high & ~host.high),
                            (own.low & host.low) | (first.low & ~host.low)};
  resolved.last_address = resolved.first_address;
  return resolved;
}

bool is_port_in_range(const Tuple& tuple, NatKind kind, const NatRange& range) noexcept {
  if (!begins_with_ports(tuple.protocol) && !is_icmp(tuple) && tuple.protocol != ip_protocol::kGre) return true;
  const bool source = kind == NatKind::source || is_icmp(tuple);
  const std::uint16_t port = source ? tuple.source_port : tuple.destination_port;
  return port >= range.first_port && port <= range.last_port;
}

bool is_source_in_range(const Tuple& tuple, const NatRange& range) noexcept {
  if (range.has(NatRange::kAddresses) && (tuple.source < range.first_address || tuple.source > range.last_address)) {
    return false;
  }
  return !range.has(NatRange::kPorts) || is_port_in_range(tuple, NatKind::source, range);
}

Ipv6Address choose_address(const Tuple& tuple, NatKind kind, const NatRange& range) noexcept {
  if (!range.has(NatRange::kAddresses)) return end_of(tuple, kind);
  if (range.first_address == range.last_address) return range.first_address;
  const std::uint8_t version = tuple.ip_version;
  const bool persistent = range.has(NatRange::kPersistent);
  const std::size_t count = version == 4 ? 1 : 4;
  const Words first = words_of(range.first_address, version), last = words_of(range.last_address, version),
              destination = words_of(tuple.destination, version);
  Words source = words_of(tuple.source, version), chosen{};
  std::ranges::transform(source, source.begin(), as_hashed);
  std::uint32_t hash = hash_of(source, persistent ? 0 : as_hashed(destination[count - 1]));
  bool below_last = false;  // words that follow may have any value
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint32_t least = below_last ? 0 : first[i];
    const std::uint32_t choices = below_last ? 0xffffffff : last[i] - first[i] + 1;
    chosen[i] = least + static_cast<std::uint32_t>(std::uint64_t{hash} * choices >> 32);
    below_last = below_last || chosen[i] != last[i];
    // A destination's words are overwritten as they are chosen.
    if (!persistent) hash ^= as_hashed(kind == NatKind::destination ? chosen[i] : destination[i]);
  }
  // Linux leaves the range where its two ends differ in several words.
  return std::clamp(address_of(chosen, version), range.first_address, range.last_address);
}

PortSearch port_search(const Tuple& tuple, NatKind kind, const NatRange& range) noexcept {
  const bool from_random = kind == NatKind::source || range.random_port();
  const bool explicit_range = range.has(NatRange::kPorts);
  if (!is_icmp(tuple) && !begins_with_ports(tuple.protocol)) return {};
  if (explicit_range) {
    const auto [first, last] = std::minmax(range.first_port, range.last_port);
    return {.first = first, .count = std::uint32_t{last} - first + 1, .from_random = from_random};
  }
  if (is_icmp(tuple)) return {.first = 0, .count = 0x10000, .from_random = from_random};
  if (kind == NatKind::destination) return {};
  // Servers may trust low ports, as rlogin's does.
  constexpr std::uint16_t kUser = 1024, kReserved = 512;
  if (tuple.source_port < kReserved) return {.first = 1, .count = 511, .from_random = from_random};
  if (tuple.source_port < kUser) return {.first = 600, .count = 424, .from_random = from_random};
  return {.first = kUser, .count = 0x10000 - kUser, .from_random = from_random};
}

std::uint16_t& port_of(Tuple& tuple, NatKind kind) noexcept {
  return kind == NatKind::source || is_icmp(tuple) ? tuple.source_port : tuple.destination_port;
}

}  // namespace penstock::conntrack
