// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "control/connection_filter.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>

#include "base/nanoseconds.h"
#include "packet/ip.h"
#include "packet/transport.h"

namespace penstock::control {

namespace {

Error wrong_member(std::string_view member, const std::string& found, std::string expected) {
  return {{}, fmt::format("{}: wrong value", member), in_quotes(found), std::move(expected)};
}

std::string address_text(const conntrack::Tuple& tuple, const Ipv6Address& address) {
  return tuple.ip_version == 4 ? to_string(Ipv4Address{static_cast<std::uint32_t>(address.low)}) : to_string(address);
}

/// With what its protocol tells connections apart by.
Json tuple_json(const conntrack::Tuple& tuple) {
  Json json{{"src", address_text(tuple, tuple.source)}, {"dst", address_text(tuple, tuple.destination)}};
  if (begins_with_ports(tuple.protocol)) {
    json["sport"] = tuple.source_port;
    json["dport"] = tuple.destination_port;
  } else if (tuple.protocol == ip_protocol::kIcmp || tuple.protocol == ip_protocol::kIcmpv6) {
    json["type"] = tuple.destination_port >> 8;
    json["code"] = tuple.destination_port & 0xff;
    json["id"] = tuple.source_port;
  } else if (tuple.protocol == ip_protocol::kGre) {
    json["srckey"] = tuple.source_port;
    json["dstkey"] = tuple.destination_port;
  }
  return json;
}

}  // namespace

Result<conntrack::Filter> filter_of(const Request& request) {
  using conntrack::Connection;
  conntrack::Filter filter;
  if (const std::string proto = request.text("proto"); !proto.empty()) {
    filter.protocol = conntrack::protocol_named(proto);
    if (!filter.protocol)
      return failure(wrong_member("proto", proto, "a protocol such as tcp, udp, icmp, or a number to 255"));
  }
  for (const auto& [member, prefix] : {std::pair{"src", &filter.source}, std::pair{"dst", &filter.destination}}) {
    const std::string text = request.text(member);
    if (text.empty()) continue;
    *prefix = conntrack::read_prefix(text);
    if (!*prefix) return failure(wrong_member(member, text, "an address, or a prefix without host bits: 10.0.0.0/8"));
  }
  if (const auto port = request.number("sport")) filter.source_port = static_cast<std::uint16_t>(*port);
  if (const auto port = request.number("dport")) filter.destination_port = static_cast<std::uint16_t>(*port);
  if (const std::string family = request.text("family"); !family.empty()) filter.ip_version = family == "ipv4" ? 4 : 6;
  const std::string state = request.text("state");
  if (state == "ASSURED") {
    filter.status_set = Connection::kAssured;
  } else if (state == "UNREPLIED") {
    filter.status_clear = Connection::kSeenReply;
  } else if (!state.empty()) {
    const auto* const found = std::ranges::find(conntrack::kTcpStateNames, state);
    filter.tcp_state = static_cast<conntrack::TcpState>(found - conntrack::kTcpStateNames.begin());
  }
  return filter;
}

Json to_json(const conntrack::Record& record, const std::string& function) {
  const std::uint8_t protocol = record.original.protocol;
  Json json{{"function", function},
            {"family", record.original.ip_version == 4 ? "ipv4" : "ipv6"},
            {"protocol", conntrack::protocol_name(protocol)},
            {"protocol_number", protocol},
            {"timeout_s", record.remaining_ns / kNsPerSecond},
            {"state", nullptr},
            {"original", tuple_json(record.original)},
            {"reply", tuple_json(record.reply)},
            {"seen_reply", record.seen_reply()},
            {"assured", record.assured()},
            {"mark", record.mark}};
  if ((record.status & conntrack::Connection::kHelper) != 0) json["helper"] = "ftp";
  if (protocol == ip_protocol::kTcp) json["state"] = conntrack::name(record.tcp_state);
  return json;
}

}  // namespace penstock::control
