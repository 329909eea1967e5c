// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "nf/nids/alert/fast_log.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "nf/nids/alert/packet_text.h"
#include "packet/transport.h"

namespace penstock::nids {

namespace {

using stack::DecodedPacket;

/// For ICMP, type and code take the place of ports.
void append_ends(std::string& out, const DecodedPacket& packet) {
  unsigned first = packet.source.port;
  unsigned second = packet.destination.port;
  if (packet.protocol == ip_protocol::kIcmp || packet.protocol == ip_protocol::kIcmpv6) {
    first = packet.transport.size() < 2 ? 0 : packet.transport[0];
    second = packet.transport.size() < 2 ? 0 : packet.transport[1];
  } else if (!has_logged_ports(packet.protocol)) {
    first = second = 0;
  }
  append_address(out, packet.source.address, packet.ip_version);
  fmt::format_to(std::back_inserter(out), ":{} -> ", first);
  append_address(out, packet.destination.address, packet.ip_version);
  fmt::format_to(std::back_inserter(out), ":{}", second);
}

/// For packets that are not IP: the first bytes, and the number of the frame.
void append_raw(std::string& out, const DecodedPacket& packet) {
  constexpr std::size_t kMost = 32;
  out.append(" [**] [Raw pkt: ");
  for (const std::uint8_t byte : packet.frame.first(std::min(packet.frame.size(), kMost)))
    fmt::format_to(std::back_inserter(out), "{:02X} ", byte);
  out.append("]");
  if (packet.number != 0) fmt::format_to(std::back_inserter(out), " [pcap file packet: {}]", packet.number);
}

/// Appends a rule's message; control characters become dots, to keep it on one line.
void append_message(std::string& out, std::string_view text) {
  for (const char c : text) out.push_back(static_cast<unsigned char>(c) < 0x20 || c == 0x7f ? '.' : c);
}

}  // namespace

void append_fast(std::string& out, const Alert& alert, report::TimeText& times) {
  const Rule& rule = *alert.rule;
  const DecodedPacket& packet = alert.packet->packet;
  times.append_us(out, packet.timestamp_ns);
  out.append("  ");
  if (drops(rule.action)) out.append(alert.dropped ? "[Drop] " : "[wDrop] ");
  fmt::format_to(std::back_inserter(out), "[**] [{}:{}:{}] ", rule.gid, rule.sid, rule.rev);
  append_message(out, rule.message);
  out.append(" [**] [Classification: ");
  append_message(out, rule.class_description.empty() ? std::string_view("(null)") : rule.class_description);
  fmt::format_to(std::back_inserter(out), "] [Priority: {}]", rule.priority);
  if (packet.ip_version == 0) return append_raw(out, packet);
  const std::string_view protocol = protocol_name(packet.protocol);
  out.append(" {");
  if (protocol.empty()) {
    fmt::format_to(std::back_inserter(out), "PROTO:{:03}", packet.protocol);
  } else {
    out.append(protocol);
  }
  out.append("} ");
  append_ends(out, packet);
}

}  // namespace penstock::nids
