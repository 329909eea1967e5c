// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Records: the fields that cross PCIe alone, without the frame that they are part of. A record has a place for each
// field, whether or not the packet has it, so that all records of a batch are of one size. It begins with where the
// packet's headers lie, so that the side that did not parse can put the fields in their places.

#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>

#include "base/host_device.h"
#include "packet/field.h"
#include "packet/field_range.h"
#include "packet/packet.h"

namespace penstock::ring {

/// What fields there are, and where in the record. Passed by value to kernels.
struct RecordLayout {
  static constexpr std::size_t kMostFields = 20;
  struct Place {
    Field field;
    std::uint8_t at;
    std::uint8_t length;
  };
  Place places[kMostFields];
  std::uint32_t count = 0;
  std::uint32_t bytes = 0;  // a multiple of 4; 0: nothing crosses

  [[nodiscard]] PENSTOCK_HOST_DEVICE constexpr bool empty() const noexcept { return count == 0; }
};

/// None where a field's length differs from packet to packet (payload, options, tags, …): then frames must cross.
/// `verdict`, `frame_shape`, `wire_length`, `in_port` and `flow_hash` are left out: the ring has its own ways for them.
[[nodiscard]] std::optional<RecordLayout> record_layout(FieldSet fields);

/// Where the headers of a record's packet lie: the part of PacketLayout that finds the fields of fixed length.
struct RecordHeader {
  std::uint16_t network_offset;
  std::uint16_t transport_offset;
  std::uint16_t flags;
  NetworkLayer network;
  std::uint8_t transport;
};
static_assert(sizeof(RecordHeader) == 8);

PENSTOCK_HOST_DEVICE inline void copy_bytes(std::uint8_t* to, const std::uint8_t* from, std::uint32_t count) noexcept {
  for (std::uint32_t i = 0; i < count; ++i) to[i] = from[i];
}

/// Writes the packet's record; the places of fields that the packet has not are left as they are. The packet's layout
/// must be set.
PENSTOCK_HOST_DEVICE inline void gather(const RecordLayout& record, PacketView packet, std::uint8_t* to) noexcept {
  const PacketLayout& layout = packet.layout();
  const RecordHeader header{layout.network_offset, layout.transport_offset, layout.flags, layout.network,
                            layout.transport};
  memcpy(to, &header, sizeof header);
  for (std::uint32_t i = 0; i < record.count; ++i) {
    const RecordLayout::Place place = record.places[i];
    if (place.field == Field::mark) {
      memcpy(to + place.at, &packet.packet->mark, sizeof packet.packet->mark);
    } else if (place.field == Field::timestamp) {
      memcpy(to + place.at, &packet.packet->timestamp_ns, sizeof packet.packet->timestamp_ns);
    } else {
      const FieldRange range = field_range(place.field, layout, packet.packet->link_type, packet.length());
      copy_bytes(to + place.at, packet.frame + range.offset, range.length);
    }
  }
}

/// What the record says of the layout goes into the descriptor: for a side that did not parse, before it scatters.
PENSTOCK_HOST_DEVICE inline void take_layout(const std::uint8_t* from, PacketView packet) noexcept {
  RecordHeader header;
  memcpy(&header, from, sizeof header);
  PacketLayout& layout = packet.packet->layout;
  layout.network_offset = header.network_offset;
  layout.transport_offset = header.transport_offset;
  layout.flags = header.flags;
  layout.network = header.network;
  layout.transport = header.transport;
}

/// Puts the fields of the packet's record in their places. The packet's layout must be set.
PENSTOCK_HOST_DEVICE inline void scatter(const RecordLayout& record, const std::uint8_t* from,
                                         PacketView packet) noexcept {
  const PacketLayout& layout = packet.layout();
  for (std::uint32_t i = 0; i < record.count; ++i) {
    const RecordLayout::Place place = record.places[i];
    if (place.field == Field::mark) {
      memcpy(&packet.packet->mark, from + place.at, sizeof packet.packet->mark);
    } else if (place.field == Field::timestamp) {
      memcpy(&packet.packet->timestamp_ns, from + place.at, sizeof packet.packet->timestamp_ns);
    } else {
      const FieldRange range = field_range(place.field, layout, packet.packet->link_type, packet.length());
      copy_bytes(packet.frame + range.offset, from + place.at, range.length);
    }
  }
}

}  // namespace penstock::ring
