// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "nf/nids/alert/eve_alert.h"

#include <algorithm>
#include <string_view>

#include "nf/nids/alert/eve_members.h"
#include "nf/nids/alert/packet_text.h"
#include "packet/transport.h"
#include "report/json_text.h"

namespace penstock::nids {

namespace {

using report::JsonText;
using stack::Bytes;
using stack::DecodedPacket;
using stack::Direction;
using stack::Endpoint;
using stack::TrackedPacket;

constexpr std::size_t kMostStreamBytes = 4096;  // Suricata's payload-buffer-size

/// Packets that Suricata derives from a frame, such as the inner packet of a tunnel, have no packet number of their
/// own.
bool is_frames_own(const TrackedPacket& tracked) noexcept {
  return tracked.packet.tunnel_depth == 0 && !tracked.packet.reassembled && !tracked.stream_end;
}

void add_icmp(JsonText& json, const DecodedPacket& packet) {
  const bool v4 = packet.ip_version == 4 && packet.protocol == ip_protocol::kIcmp;
  const bool v6 = packet.ip_version == 6 && packet.protocol == ip_protocol::kIcmpv6;
  if ((!v4 && !v6) || packet.transport.size() < 2) return;
  json.member("icmp_type", packet.transport[0]);
  json.member("icmp_code", packet.transport[1]);
}

/// Adds the members that every record about a packet has.
void add_header(JsonText& json, const TrackedPacket& tracked, std::string_view event, report::TimeText& times) {
  const DecodedPacket& packet = tracked.packet;
  add_time(json, "timestamp", packet.timestamp_ns, times);
  if (tracked.flow != nullptr) json.member("flow_id", tracked.flow->id);
  if (packet.number != 0 && is_frames_own(tracked)) json.member("pcap_cnt", packet.number);
  json.member("event_type", event);
  if (packet.vlan_count > 0) {
    json.open_array("vlan");
    const std::size_t tags = std::min<std::size_t>(packet.vlan_count, packet.vlan_ids.size());
    for (std::size_t i = 0; i < tags; ++i) json.element(packet.vlan_ids[i]);
    json.close_array();
  }
  if (packet.ip_version != 0) {
    const bool ports = has_logged_ports(packet.protocol);
    add_address(json, "src_ip", packet.source, packet.ip_version);
    if (ports) json.member("src_port", packet.source.port);
    add_address(json, "dest_ip", packet.destination, packet.ip_version);
    if (ports) json.member("dest_port", packet.destination.port);
    add_protocol(json, packet.protocol);
    json.member("ip_v", packet.ip_version);
    add_icmp(json, packet);
  }
  json.member("pkt_src", packet_source(tracked));
}

void add_side(JsonText& json, std::string_view key, const DecodedPacket& packet, const Endpoint& endpoint) {
  json.open(key);
  add_address(json, "ip", endpoint, packet.ip_version);
  if (has_logged_ports(packet.protocol)) json.member("port", endpoint.port);
  json.close();
}

/// Values of one key are grouped; keys are in the order of their first occurrence.
void add_metadata(JsonText& json, const Rule& rule) {
  if (rule.metadata.empty()) return;
  json.open("metadata");
  for (auto entry = rule.metadata.begin(); entry != rule.metadata.end(); ++entry) {
    const std::string& key = (*entry)[0];
    const auto is_same = [&](const auto& other) { return other[0] == key; };
    if (std::any_of(rule.metadata.begin(), entry, is_same)) continue;
    json.open_array_escaped(key);
    for (auto value = entry; value != rule.metadata.end(); ++value) {
      if (is_same(*value)) json.element((*value)[1]);
    }
    json.close_array();
  }
  json.close();
}

void add_references(JsonText& json, const Rule& rule, const std::map<std::string, std::string, std::less<>>& prefixes) {
  if (rule.references.empty()) return;
  json.open_array("references");
  for (const RuleReference& reference : rule.references) {
    const auto prefix = prefixes.find(reference.kind);
    json.element((prefix == prefixes.end() ? std::string() : prefix->second) + reference.id);
  }
  json.close_array();
}

void add_alert(JsonText& json, const Alert& alert, const EveOptions& options) {
  const Rule& rule = *alert.rule;
  const DecodedPacket& packet = alert.packet->packet;
  json.open("alert");
  json.member("action", std::string_view(alert.dropped || is_reject(rule.action) ? "blocked" : "allowed"));
  json.member("gid", rule.gid);
  json.member("signature_id", rule.sid);
  json.member("rev", rule.rev);
  json.member("signature", rule.message);
  json.member("category", rule.class_description);
  json.member("severity", rule.priority);
  if (!rule.target.empty() && packet.ip_version != 0) {
    const bool source_is_target = rule.target == "src_ip";
    add_side(json, "source", packet, source_is_target ? packet.destination : packet.source);
    add_side(json, "target", packet, source_is_target ? packet.source : packet.destination);
  }
  if (options.references != nullptr) add_references(json, rule, *options.references);
  add_metadata(json, rule);
  json.close();
}

void add_tunnel(JsonText& json, const TrackedPacket& tracked) {
  const DecodedPacket& packet = tracked.packet;
  const OuterPacket outer = outer_packet(packet);
  json.open("tunnel");
  if (outer.ip_version != 0) {
    add_address(json, "src_ip", outer.source, outer.ip_version);
    json.member("src_port", outer.source.port);
    add_address(json, "dest_ip", outer.destination, outer.ip_version);
    json.member("dest_port", outer.destination.port);
    add_protocol(json, outer.protocol);
  }
  json.member("depth", packet.tunnel_depth);
  if (packet.number != 0) json.member("pcap_cnt", packet.number);
  json.member("pkt_src", std::string_view("wire/pcap"));
  json.close();
}

void add_flow(JsonText& json, const TrackedPacket& tracked, report::TimeText& times) {
  const stack::Flow& flow = *tracked.flow;
  const DecodedPacket& packet = tracked.packet;
  const bool to_server = tracked.direction == Direction::to_server;
  json.member("direction", std::string_view(to_server ? "to_server" : "to_client"));
  json.open("flow");
  add_counts(json, flow);
  add_time(json, "start", flow.start_ns, times);
  const Endpoint& client = to_server ? packet.source : packet.destination;
  const Endpoint& server = to_server ? packet.destination : packet.source;
  add_address(json, "src_ip", client, packet.ip_version);
  add_address(json, "dest_ip", server, packet.ip_version);
  if (has_logged_ports(packet.protocol) && packet.source.port != 0) {
    json.member("src_port", client.port);
    json.member("dest_port", server.port);
  }
  json.close();
}

/// Printable ASCII characters and newlines are copied, all other bytes become dots.
void append_printable(std::string& out, Bytes bytes) {
  for (const std::uint8_t byte : bytes) {
    switch (byte) {
      case '\n': out.append("\\n"); break;
      case '\r': out.append("\\r"); break;
      case '"': out.append("\\\""); break;
      case '\\': out.append("\\\\"); break;
      default: out.push_back(byte >= 0x20 && byte < 0x7f ? static_cast<char>(byte) : '.');
    }
  }
}

void add_payload(JsonText& json, const Alert& alert) {
  const bool stream = alert.in_stream && alert.packet->packet.protocol == ip_protocol::kTcp;
  Bytes bytes = alert.packet->packet.payload;
  if (stream && !alert.stream.empty()) bytes = alert.stream.first(std::min(alert.stream.size(), kMostStreamBytes));
  json.member("payload", [&](std::string& out) { report::append_base64(out, bytes); });
  json.member("payload_printable", [&](std::string& out) { append_printable(out, bytes); });
  json.member("stream", std::uint64_t{stream});
}

/// Adds the bytes of the frame, or of the IP packet if it was found inside another one. Packets made by the stack have
/// no bytes.
void add_packet(JsonText& json, const TrackedPacket& tracked) {
  const DecodedPacket& packet = tracked.packet;
  const bool whole_frame = is_frames_own(tracked);
  const Bytes bytes = whole_frame ? packet.frame : packet.ip;
  const LinkName link = link_name(whole_frame ? packet.link_type : LinkType::raw_ip);
  json.member("packet", [&](std::string& out) { report::append_base64(out, bytes); });
  json.open("packet_info");
  json.member("linktype", link.dlt);
  json.member("linktype_name", link.name);
  json.close();
}

}  // namespace

void append_eve(std::string& out, const Alert& alert, const EveOptions& options, report::TimeText& times) {
  const TrackedPacket& tracked = *alert.packet;
  JsonText json(out);
  json.begin();
  if (alert.rule == nullptr) {
    add_header(json, tracked, "packet", times);
    add_packet(json, tracked);
    json.close();
    return;
  }
  add_header(json, tracked, "alert", times);
  add_alert(json, alert, options);
  if (tracked.packet.tunnel_depth > 0 || tracked.packet.reassembled) add_tunnel(json, tracked);
  if (tracked.packet.ip_version != 0) {
    if (tracked.flow != nullptr) add_flow(json, tracked, times);
    if (options.payload) add_payload(json, alert);
  }
  if (options.packet) add_packet(json, tracked);
  json.close();
}

}  // namespace penstock::nids
