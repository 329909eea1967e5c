// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "packet/field.h"

#include <algorithm>
#include <array>

namespace penstock {

namespace {

constexpr std::array<std::string_view, kFieldCount> kNames{
    "eth_dst",          "eth_src",          "eth_type",       "vlan_tags",   "link_header",   "arp",
    "ipv4_version_ihl", "ipv4_tos",         "ipv4_length",    "ipv4_id",     "ipv4_fragment", "ipv4_ttl",
    "ipv4_protocol",    "ipv4_checksum",    "ipv4_src",       "ipv4_dst",    "ipv4_options",  "ipv6_class_label",
    "ipv6_length",      "ipv6_next_header", "ipv6_hop_limit", "ipv6_src",    "ipv6_dst",      "ipv6_extensions",
    "l4_src_port",      "l4_dst_port",      "l4_checksum",    "tcp_seq",     "tcp_ack",       "tcp_flags",
    "tcp_window",       "tcp_urgent",       "tcp_options",    "udp_length",  "sctp_tag",      "icmp_type_code",
    "icmp_rest",        "payload",          "trailer",        "frame_shape", "wire_length",   "timestamp",
    "in_port",          "verdict",          "mark",           "flow_hash"};

constexpr FieldSet fields_between(Field first, Field last) {
  FieldSet set;
  for (auto f = static_cast<unsigned>(first); f <= static_cast<unsigned>(last); ++f) set |= {static_cast<Field>(f)};
  return set;
}

struct Group {
  std::string_view name;
  FieldSet fields;
};
constexpr std::array<Group, 4> kGroups{{{"link", fields_between(Field::eth_dst, Field::arp)},
                                        {"ipv4", kIpv4HeaderFields},
                                        {"ipv6", kIpv6HeaderFields},
                                        {"l4", fields_between(Field::l4_src_port, Field::icmp_rest)}}};

}  // namespace

std::string_view name(Field field) { return kNames[static_cast<unsigned>(field)]; }

std::string to_string(FieldSet fields) {
  std::string text;
  const auto add = [&](std::string_view word) {
    if (!text.empty()) text += ' ';
    text += word;
  };
  for (const Group& group : kGroups) {
    if ((group.fields - fields).empty()) {
      add(group.name);
      fields -= group.fields;
    }
  }
  for (unsigned f = 0; f < kFieldCount; ++f) {
    if (fields.has(static_cast<Field>(f))) add(kNames[f]);
  }
  return text.empty() ? "-" : text;
}

}  // namespace penstock
