// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// A table whose packets are translated, as those of a router with NAT.

#pragma once

#include <optional>
#include <string>
#include <utility>

#include "conntrack/ftp.h"
#include "conntrack/nat.h"
#include "conntrack/testing/clocked_table.h"

namespace penstock::conntrack {

/// What the rules say about a new connection.
struct NatRules {
  NatRange destination{}, source{};
};

inline Ipv6Address address_of(const std::string& text) {
  if (const auto v4 = parse_ipv4(text)) return {0, v4->bits};
  return parse_ipv6(text).value();
}

inline NatRange to_addresses(const std::string& first, const std::string& last, std::uint8_t flags = 0) {
  return {.first_address = address_of(first),
          .last_address = address_of(last),
          .flags = static_cast<std::uint8_t>(NatRange::kAddresses | flags)};
}
inline NatRange to_address(const std::string& address, std::uint8_t flags = 0) {
  return to_addresses(address, address, flags);
}
inline NatRange with_ports(NatRange range, std::uint16_t first, std::uint16_t last) {
  range.first_port = first;
  range.last_port = last;
  range.flags |= NatRange::kPorts;
  return range;
}

/// Bytes of an IPv4 datagram, with a correct header.
inline Packet fragment_of(const Packet& datagram, std::uint32_t from, std::uint32_t to, bool more) {
  constexpr std::size_t kHeader = sizeof(Ipv4Header);
  Packet packet(datagram.begin(), datagram.begin() + kHeader);
  packet.insert(packet.end(), datagram.begin() + kHeader + from, datagram.begin() + kHeader + to);
  put_be16(packet, 2, static_cast<std::uint32_t>(packet.size()));
  put_be16(packet, 6, (more ? 0x2000U : 0U) | from / 8);
  put_be16(packet, 10, 0);
  put_be16(packet, 10, testing::slow_checksum(packet, 0, kHeader));
  return packet;
}

struct TranslatingTable : ClockedTable {
  using ClockedTable::ClockedTable;

  /// The packet as it leaves; nothing if it must be dropped. `later`: whether it is confirmed later, by the caller.
  std::optional<Packet> forward(const Packet& packet, const NatRules& rules = {}, bool later = false) {
    ParsedPacket parsed(packet);
    parsed.bytes.resize(packet.size() + kMostFtpGrowth);  // room for it
    last = table.track(parsed.view(), now_ns);
    if (!translate(parsed.view(), rules)) return std::nullopt;
    if (last.connection != nullptr && last.connection->has_helper() &&
        table.help(parsed.view(), last) != Helped::passes) {
      return std::nullopt;
    }
    parsed.bytes.resize(parsed.descriptor.length);
    if (!later && last.connection != nullptr && !table.confirm(*last.connection)) return std::nullopt;
    return parsed.bytes;
  }

  Tracked last;  // of the last packet

 private:
  bool translate(PacketView packet, const NatRules& rules) {
    if (last.connection == nullptr) return true;
    if (!last.connection->confirmed() && last.may_be_first() &&
        (!table.translate(*last.connection, NatKind::destination, rules.destination) ||
         !table.translate(*last.connection, NatKind::source, rules.source))) {
      return false;
    }
    return rewrite(packet, rewrite_for(last, Rewrite::kDestination)) &&
           rewrite(packet, rewrite_for(last, Rewrite::kSource));
  }
};

}  // namespace penstock::conntrack
