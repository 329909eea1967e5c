// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "ring/record.h"

namespace penstock::ring {

namespace {

/// The most bytes that the field has in any packet; 0 if it is not bounded.
std::uint8_t width_of(Field field) noexcept {
  switch (field) {
    case Field::eth_dst:
    case Field::eth_src: return 6;
    case Field::eth_type:
    case Field::ipv4_length:
    case Field::ipv4_id:
    case Field::ipv4_fragment:
    case Field::ipv4_checksum:
    case Field::ipv6_length:
    case Field::l4_src_port:
    case Field::l4_dst_port:
    case Field::tcp_flags:
    case Field::tcp_window:
    case Field::tcp_urgent:
    case Field::udp_length:
    case Field::icmp_type_code: return 2;
    case Field::ipv4_version_ihl:
    case Field::ipv4_tos:
    case Field::ipv4_ttl:
    case Field::ipv4_protocol:
    case Field::ipv6_next_header:
    case Field::ipv6_hop_limit: return 1;
    case Field::ipv4_src:
    case Field::ipv4_dst:
    case Field::ipv6_class_label:
    case Field::l4_checksum:  // for SCTP; the other protocols have two bytes
    case Field::tcp_seq:
    case Field::tcp_ack:
    case Field::sctp_tag:
    case Field::icmp_rest:
    case Field::mark: return 4;
    case Field::timestamp: return 8;
    case Field::ipv6_src:
    case Field::ipv6_dst: return 16;
    default: return 0;
  }
}

}  // namespace

std::optional<RecordLayout> record_layout(FieldSet fields) {
  fields -= {Field::verdict, Field::frame_shape, Field::wire_length, Field::in_port, Field::flow_hash};
  RecordLayout layout;
  std::uint32_t at = sizeof(RecordHeader);
  for (unsigned f = 0; f < kFieldCount; ++f) {
    const auto field = static_cast<Field>(f);
    if (!fields.has(field)) continue;
    const std::uint8_t width = width_of(field);
    if (width == 0 || layout.count == RecordLayout::kMostFields) return std::nullopt;
    layout.places[layout.count++] = {field, static_cast<std::uint8_t>(at), width};
    at += width;
  }
  if (layout.count > 0) layout.bytes = (at + 3) / 4 * 4;
  return layout;
}

}  // namespace penstock::ring
