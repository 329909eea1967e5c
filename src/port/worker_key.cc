// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "port/worker_key.h"

#include <algorithm>

#include "packet/checksum.h"
#include "packet/ethernet.h"
#include "packet/flow_hash.h"
#include "packet/ip.h"
#include "packet/parse_core.h"
#include "packet/transport.h"
#include "port/network_of.h"

namespace penstock::port {

namespace {

/// A pseudo protocol for tunnels, so that all packets between two addresses have the same hash.
constexpr std::uint8_t kTunnel = 0xff;
constexpr std::size_t kPortBytes = 4;

/// Addresses in the form that `symmetric_hash` expects.
struct Ends {
  std::uint64_t source = 0, destination = 0;

  [[nodiscard]] std::uint32_t hash(std::uint8_t protocol) const noexcept {
    return symmetric_hash(source, destination, protocol);
  }
  /// `ports` points to the source port and the destination port.
  [[nodiscard]] std::uint32_t hash(std::uint8_t protocol, const std::uint8_t* ports) const noexcept {
    const std::uint16_t from = reinterpret_cast<const Be16*>(ports)->value();
    const std::uint16_t to = reinterpret_cast<const Be16*>(ports + 2)->value();
    if (protocol == ip_protocol::kUdp && (is_tunnel_port(from) || is_tunnel_port(to))) return hash(kTunnel);
    return symmetric_hash(with_port(source, from), with_port(destination, to), protocol);
  }
};

template <typename Header>
const Header& header_of(Bytes bytes) noexcept {
  static_assert(alignof(Header) == 1);
  return *reinterpret_cast<const Header*>(bytes.data());
}

Ends ends_of(const Ipv4Header& ip) noexcept { return {ip.source.value(), ip.destination.value()}; }
Ends ends_of(const Ipv6Header& ip) noexcept {
  return {fold_ipv6(ip.source[0].value(), ip.source[1].value()),
          fold_ipv6(ip.destination[0].value(), ip.destination[1].value())};
}
Ends ends_of(const DatagramKey& key) noexcept {
  if (key.ip_version == 4) return {key.source.low, key.destination.low};
  return {fold_ipv6(key.source.high, key.source.low), fold_ipv6(key.destination.high, key.destination.low)};
}

/// Skips IPv6 extension headers as the stack's decoder does.
struct Extensions {
  std::uint8_t protocol;  // the protocol at the start of `rest`
  Bytes rest;
  bool seen_fragment = false;  // an atomic fragment (RFC 6946); all that follow it are treated as atomic too
  enum class End : std::uint8_t { transport, fragment, cut } end = End::transport;

  void walk() noexcept {
    while (step()) {
    }
  }

 private:
  bool step() noexcept {
    std::size_t length = 0;
    switch (protocol) {
      case ip_protocol::kHopByHop:
      case ip_protocol::kRouting:
      case ip_protocol::kDestinationOptions:
      case ip_protocol::kMobility:
      case ip_protocol::kHip:
      case ip_protocol::kShim6: length = rest.size() < 2 ? 2 : 8 + rest[1] * std::size_t{8}; break;
      case ip_protocol::kAh: length = rest.size() < 2 || rest[1] == 0 ? 12 : 8 + rest[1] * std::size_t{4}; break;
      case ip_protocol::kFragment:
        length = sizeof(Ipv6FragmentHeader);
        if (rest.size() >= length && !seen_fragment) {
          seen_fragment = true;
          const std::uint16_t word = header_of<Ipv6FragmentHeader>(rest).fragment.value();
          if ((word & (Ipv6FragmentHeader::kOffsetMask | Ipv6FragmentHeader::kMoreFragments)) != 0) {
            end = End::fragment;
            return false;
          }
        }
        break;
      default: return false;
    }
    if (length > rest.size()) {
      end = End::cut;
      return false;
    }
    protocol = rest[0];
    rest = rest.subspan(length);
    return true;
  }
};

/// Of any protocol but ICMP, by the first header that is not an IPv6 extension header. Empty if the bytes end too
/// early.
std::optional<std::uint32_t> hash_of_ports(Ends ends, std::uint8_t protocol, Bytes bytes) noexcept {
  switch (protocol) {
    case ip_protocol::kTcp:
    case ip_protocol::kUdp:
    case ip_protocol::kSctp:
      if (bytes.size() < kPortBytes) return std::nullopt;
      return ends.hash(protocol, bytes.data());
    case ip_protocol::kIpv4:
    case ip_protocol::kIpv6:
    case ip_protocol::kGre: return ends.hash(kTunnel);
    default: return ends.hash(protocol);
  }
}

/// Whether it quotes the packet that caused it (RFC 792, RFC 4443).
constexpr bool is_icmp_error(unsigned version, std::uint8_t type) noexcept {
  if (version == 6) return type >= 1 && type <= 4;
  return type == 3 || type == 4 || type == 5 || type == 11 || type == 12;
}

/// Of the flow of a quoted packet; `own` if it is a later fragment, or no packet. Empty if the bytes end too early.
std::optional<std::uint32_t> hash_of_quoted(std::uint32_t own, unsigned version, Bytes quoted) noexcept {
  if (version == 4) {
    if (quoted.size() < sizeof(Ipv4Header)) return std::nullopt;
    const auto& ip = header_of<Ipv4Header>(quoted);
    if (ip.version() != 4 || ip.header_length() < sizeof(Ipv4Header)) return own;
    if ((ip.fragment.value() & Ipv4Header::kOffsetMask) != 0) return own;
    if (quoted.size() < ip.header_length()) return std::nullopt;
    return hash_of_ports(ends_of(ip), ip.protocol, quoted.subspan(ip.header_length()));
  }
  if (quoted.size() < sizeof(Ipv6Header)) return std::nullopt;
  if (quoted[0] >> 4 != 6) return own;
  const auto& ip = header_of<Ipv6Header>(quoted);
  Extensions extensions{ip.next_header, quoted.subspan(sizeof(Ipv6Header))};
  extensions.walk();
  if (extensions.end == Extensions::End::cut) return std::nullopt;
  if (extensions.end == Extensions::End::transport)
    return hash_of_ports(ends_of(ip), extensions.protocol, extensions.rest);
  const auto& fragment = header_of<Ipv6FragmentHeader>(extensions.rest);
  if ((fragment.fragment.value() & Ipv6FragmentHeader::kOffsetMask) != 0) return own;
  return hash_of_ports(ends_of(ip), fragment.next_header, extensions.rest.subspan(sizeof(Ipv6FragmentHeader)));
}

/// An ICMP error comes to the worker of the flow that it quotes.
std::optional<std::uint32_t> hash_of_transport(Ends ends, unsigned version, std::uint8_t protocol,
                                               Bytes bytes) noexcept {
  if (protocol != (version == 4 ? ip_protocol::kIcmp : ip_protocol::kIcmpv6))
    return hash_of_ports(ends, protocol, bytes);
  if (bytes.empty()) return std::nullopt;
  const std::uint32_t own = ends.hash(protocol);
  if (!is_icmp_error(version, bytes[0])) return own;
  if (bytes.size() < sizeof(IcmpHeader)) return std::nullopt;
  return hash_of_quoted(own, version, bytes.subspan(sizeof(IcmpHeader)));
}

std::optional<std::uint32_t> hash_of_payload(Ends ends, unsigned version, std::uint8_t protocol,
                                             Bytes payload) noexcept {
  if (version == 4) return hash_of_transport(ends, version, protocol, payload);
  Extensions extensions{protocol, payload};
  extensions.walk();
  if (extensions.end == Extensions::End::cut) return std::nullopt;
  return hash_of_transport(ends, version, extensions.protocol, extensions.rest);
}

/// The key of an unfragmented packet. If its bytes end too early, the stack has no flow for it.
inline WorkerKey whole(Ends ends, unsigned version, std::uint8_t protocol, Bytes payload) noexcept {
  const bool is_usual = protocol == ip_protocol::kTcp || protocol == ip_protocol::kUdp;
  if (is_usual && payload.size() >= kPortBytes) return {ends.hash(protocol, payload.data())};
  return {hash_of_transport(ends, version, protocol, payload).value_or(ends.hash(protocol)), false, true};
}

WorkerKey part(Ends ends, Fragment& fragment) noexcept {
  const auto known = fragment.offset == 0 ? flow_hash_of(fragment, fragment.data) : std::nullopt;
  return {known.value_or(ends.hash(0)), true, known.has_value()};
}

WorkerKey key_of_ipv4(Bytes bytes, std::uint32_t missing, const Network& network, Fragment& fragment) noexcept {
  if (bytes.size() < sizeof(Ipv4Header)) return {};
  const auto& ip = header_of<Ipv4Header>(bytes);
  const std::size_t header = ip.header_length(), total = ip.total_length.value();
  if (ip.version() != 4 || header < sizeof(Ipv4Header) || total < header || bytes.size() < header ||
      bytes.size() + missing < total) {
    return {};
  }
  const Bytes payload = bytes.subspan(header, std::min(total, bytes.size()) - header);
  const std::uint16_t word = ip.fragment.value();
  const std::uint8_t protocol = network.is_vj && ip.protocol == 0 ? ip_protocol::kTcp : ip.protocol;
  if ((word & (Ipv4Header::kMoreFragments | Ipv4Header::kOffsetMask)) == 0) {
    return whole(ends_of(ip), 4, protocol, payload);
  }
  fragment.key = {.source = {0, ip.source.value()},
                  .destination = {0, ip.destination.value()},
                  .id = ip.id.value(),
                  .vlan_ids = network.vlan_ids,
                  .ip_version = 4,
                  .protocol = ip.protocol};
  fragment.offset = (word & Ipv4Header::kOffsetMask) * 8U;
  fragment.more = (word & Ipv4Header::kMoreFragments) != 0;
  fragment.wrong_checksum = checksum(bytes.data(), static_cast<std::uint32_t>(header)) != 0;
  fragment.next_protocol = ip.protocol;
  fragment.data = payload;
  return part(ends_of(ip), fragment);
}

WorkerKey key_of_ipv6(Bytes bytes, std::uint32_t missing, const Network& network, Fragment& fragment) noexcept {
  if (bytes.size() < sizeof(Ipv6Header) || bytes[0] >> 4 != 6) return {};
  const auto& ip = header_of<Ipv6Header>(bytes);
  const std::size_t here = bytes.size() - sizeof(Ipv6Header), length = ip.payload_length.value();
  if (here + missing < length) return {};
  const Bytes payload = bytes.subspan(sizeof(Ipv6Header), std::min(length, here));
  Extensions extensions{ip.next_header, payload};
  extensions.walk();
  if (extensions.end != Extensions::End::fragment) return whole(ends_of(ip), 6, extensions.protocol, extensions.rest);
  const auto& header = header_of<Ipv6FragmentHeader>(extensions.rest);
  const std::uint16_t word = header.fragment.value();
  fragment.key = {.source = ip.source_address(),
                  .destination = ip.destination_address(),
                  .id = header.id.value(),
                  .vlan_ids = network.vlan_ids,
                  .ip_version = 6};
  fragment.wrong_checksum = false;
  fragment.offset = word & Ipv6FragmentHeader::kOffsetMask;
  fragment.more = (word & Ipv6FragmentHeader::kMoreFragments) != 0;
  fragment.next_protocol = header.next_header;
  fragment.data = extensions.rest.subspan(sizeof(Ipv6FragmentHeader));
  return part(ends_of(ip), fragment);
}

}  // namespace

WorkerKey worker_key_of(Bytes frame, std::uint32_t wire_length, LinkType link, Fragment& fragment) noexcept {
  const auto captured = static_cast<std::uint32_t>(frame.size());
  const std::uint32_t missing = wire_length > captured ? wire_length - captured : 0;
  // Fast path for most frames.
  if (link == LinkType::ethernet && captured >= sizeof(EthernetHeader)) {
    static constexpr Network kNoTags;
    const std::uint16_t type = header_of<EthernetHeader>(frame).type.value();
    const Bytes rest = frame.subspan(sizeof(EthernetHeader));
    if (type == ether_type::kIpv4) return key_of_ipv4(rest, missing, kNoTags, fragment);
    if (type == ether_type::kIpv6) return key_of_ipv6(rest, missing, kNoTags, fragment);
  }
  const Network network = network_of(frame, link);
  switch (network.version) {
    case 4: return key_of_ipv4(network.bytes, missing, network, fragment);
    case 6: return key_of_ipv6(network.bytes, missing, network, fragment);
    default: return {};
  }
}

std::optional<std::uint32_t> flow_hash_of(const Fragment& any, Bytes payload) noexcept {
  return hash_of_payload(ends_of(any.key), any.key.ip_version, any.next_protocol, payload);
}

std::uint32_t address_hash_of(const DatagramKey& key) noexcept { return ends_of(key).hash(0); }

}  // namespace penstock::port
