// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Records carry the fields that cross PCIe without their frame. A record has a place for each field, even if the packet
// does not have the field, so that all records of a batch have the same size. It begins with the positions of the
// packet's headers, so that a side that did not parse the packet can find the fields.

#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>

#include "base/host_device.h"
#include "packet/field.h"
#include "packet/field_range.h"
#include "packet/packet.h"

namespace penstock::ring {

/// The fields of a record and their places. Passed by value to kernels.
struct RecordLayout {
  static constexpr std::size_t kMostFields = 20;
  struct Place {
    Field field;
    std::uint8_t at;
    std::uint8_t length;
  };
  Place places[kMostFields];
  std::uint32_t count = 0;
  std::uint32_t bytes = 0;  // a multiple of 4; 0: no record crosses

  [[nodiscard]] PENSTOCK_HOST_DEVICE constexpr bool empty() const noexcept { return count == 0; }
};

/// The layout for these fields. Empty if a field has no fixed length (payload, options, tags, …); whole frames must
/// cross then. Leaves out `verdict`, `frame_shape`, `wire_length`, `in_port` and `flow_hash`, which the lane transfers
/// in other ways.
[[nodiscard]] std::optional<RecordLayout> record_layout(FieldSet fields);

/// Header positions of the record's packet: the part of PacketLayout that locates fields of fixed length.
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

/// Writes the packet's record. Leaves the places of fields that the packet does not have unchanged. The packet's layout
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

/// Copies the header positions of a record to the descriptor: on a side that did not parse the packet, before
/// `scatter`.
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

/// Copies the fields of a record into the packet. The packet's layout must be set.
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

/// `take_layout` and `scatter` for a sequence of packets on the host. Faster than these, because it only locates the
/// fields again if a packet's headers differ from the previous packet's.
class RecordScatter {
 public:
  explicit RecordScatter(const RecordLayout& record) noexcept : record_(record) {}

  void operator()(const std::uint8_t* from, PacketView packet) noexcept {
    place(from, packet);
    for (std::uint32_t i = 0; i < count_; ++i)
      copy(packet.frame + pieces_[i].to, from + pieces_[i].from, pieces_[i].length);
    if (metadata_) scatter(record_, from, packet);
  }

  /// Swaps the fields of the record and the packet. Doing it twice restores everything except for the layout.
  void exchange(std::uint8_t* with, PacketView packet) noexcept {
    place(with, packet);
    for (std::uint32_t i = 0; i < count_; ++i) {
      std::uint8_t* const in_frame = packet.frame + pieces_[i].to;
      std::swap_ranges(in_frame, in_frame + pieces_[i].length, with + pieces_[i].from);
    }
    if (!metadata_) return;
    for (std::uint32_t i = 0; i < record_.count; ++i) {
      std::uint8_t* const in_record = with + record_.places[i].at;
      if (record_.places[i].field == Field::mark) exchange(in_record, packet.packet->mark);
      if (record_.places[i].field == Field::timestamp) exchange(in_record, packet.packet->timestamp_ns);
    }
  }

 private:
  /// Fields that are adjacent both in the record and in the frame.
  struct Piece {
    std::uint16_t to;
    std::uint8_t from;
    std::uint8_t length;
  };

  void place(const std::uint8_t* from, PacketView packet) noexcept {
    take_layout(from, packet);
    std::uint64_t headers = 0;
    static_assert(sizeof headers == sizeof(RecordHeader));
    std::memcpy(&headers, from, sizeof headers);
    if (headers != headers_ || packet.packet->link_type != link_type_ || !found_) find_pieces(headers, packet);
  }

  template <typename Value>
  static void exchange(std::uint8_t* in_record, Value& value) noexcept {
    const Value before = value;
    std::memcpy(&value, in_record, sizeof value);
    std::memcpy(in_record, &before, sizeof value);
  }

  static void copy(std::uint8_t* to, const std::uint8_t* from, std::uint32_t length) noexcept {
    switch (length) {
      case 1: *to = *from; return;
      case 2: std::memcpy(to, from, 2); return;
      case 4: std::memcpy(to, from, 4); return;
      case 6: std::memcpy(to, from, 6); return;
      case 12: std::memcpy(to, from, 12); return;
      default: std::memcpy(to, from, length);
    }
  }

  void find_pieces(std::uint64_t headers, PacketView packet) noexcept {
    headers_ = headers;
    link_type_ = packet.packet->link_type;
    found_ = true;
    count_ = 0;
    for (std::uint32_t i = 0; i < record_.count; ++i) {
      const RecordLayout::Place place = record_.places[i];
      if (place.field == Field::mark || place.field == Field::timestamp) {
        metadata_ = true;
        continue;
      }
      // Fields of fixed length do not depend on the length of the frame, and a record has no others.
      const FieldRange range = field_range(place.field, packet.layout(), link_type_, packet.length());
      if (range.length == 0) continue;
      Piece* const last = count_ > 0 ? &pieces_[count_ - 1] : nullptr;
      if (last != nullptr && last->from + last->length == place.at && last->to + last->length == range.offset) {
        last->length = static_cast<std::uint8_t>(last->length + range.length);
      } else {
        pieces_[count_++] = {static_cast<std::uint16_t>(range.offset), place.at,
                             static_cast<std::uint8_t>(range.length)};
      }
    }
  }

  RecordLayout record_;
  std::uint64_t headers_ = 0;
  LinkType link_type_ = LinkType::ethernet;
  bool found_ = false;
  bool metadata_ = false;  // `scatter` then handles the whole record again; such records are rare
  std::uint32_t count_ = 0;
  Piece pieces_[RecordLayout::kMostFields];
};

}  // namespace penstock::ring
