// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Odd TCP header fields in segments that a host still accepts: flags, timestamps, pointers, options.

#include <algorithm>
#include <array>

#include "evasion/draft.h"

namespace penstock::evasion {

namespace {

using For = Move::For;

void odd_flags(Draft& draft, std::string_view name) {
  const auto position = draft.signature_step();
  if (!position) return;
  Packet& packet = draft.change(*position, name);
  constexpr std::array<std::uint8_t, 5> kFlags = {tcp::kAck, tcp::kAck | tcp::kEce, tcp::kAck | tcp::kCwr,
                                                  tcp::kAck | tcp::kPsh | tcp::kEce | tcp::kCwr, tcp::kAck | tcp::kPsh};
  packet.flags = draft.random.pick(std::span<const std::uint8_t>(kFlags));
  packet.reserved = static_cast<std::uint8_t>(draft.random.below(16));
}

void odd_timestamp(Draft& draft, std::string_view name) {
  const auto position = draft.signature_step();
  if (!position) return;
  Packet& packet = draft.change(*position, name);
  Random& random = draft.random;
  switch (random.below(5)) {
    case 0: packet.timestamp = TimestampOption::absent; break;
    case 1: packet.timestamp = TimestampOption::present; break;
    case 2: packet.timestamp_shift = random.between(1, 0x7ffffff0); break;
    case 3: packet.echo_shift = random.between(-1'000'000, 1'000'000); break;
    default: packet.timestamp_shift = -1; break;
  }
}

void odd_ack(Draft& draft, std::string_view name) {
  const auto position = draft.signature_step();
  if (!position) return;
  draft.change(*position, name).ack_shift = draft.random.between(-3, 0);
}

void odd_options(Draft& draft, std::string_view name) {
  const auto position = draft.signature_step();
  if (!position) return;
  const std::array<Bytes, 7> options = {Bytes{1, 1, 1},      Bytes{0, 8, 10, 9}, Bytes{8, 0},
                                        Bytes{8, 255, 3, 4}, Bytes{3, 3, 14},    Bytes{254, 4, 0xf9, 0x89},
                                        Bytes{34, 2, 1, 1}};
  draft.change(*position, name).options = draft.random.pick(std::span<const Bytes>(options));
}

void odd_window(Draft& draft, std::string_view name) {
  const auto position = draft.any_genuine();
  if (!position) return;
  Packet& packet = draft.change(*position, name);
  constexpr std::array<std::uint16_t, 4> kWindows = {0, 1, 100, 30000};
  packet.window = draft.random.pick(std::span<const std::uint16_t>(kWindows));
}

/// An empty segment that tries to corrupt the sensor's view of timestamps, windows or sequence numbers.
void odd_empty(Draft& draft, std::string_view name) {
  const auto position = draft.any_genuine();
  if (!position) return;
  Random& random = draft.random;
  const Packet target = draft.script.steps[*position].packet;
  Packet packet = draft.data(target.at + (random.percent(60) ? 0 : random.between(-3, 3)), 0);
  packet.flags = tcp::kAck;
  switch (random.below(6)) {
    case 0:
      packet.timestamp_shift = random.between(1000, 0x7fffff00);
      packet.wrong_checksum = random.percent(50);
      break;
    case 1:
      packet.timestamp_shift = random.between(1000, 0x7fffff00);
      packet.dies = true;
      break;
    case 2: packet.window = static_cast<std::uint16_t>(random.below(3)); break;
    case 3: packet.at = target.at + random.between(1, 100'000); break;
    case 4: packet.ack_shift = random.between(-2, 100'000); break;
    default:
      packet.window = 0;
      packet.dies = true;
      break;
  }
  draft.insert(*position, packet, name);
}

/// A checksum of 0 can be written in two ways.
void odd_checksum(Draft& draft, std::string_view name) {
  const auto position = draft.signature_step();
  if (position) draft.change(*position, name).minus_zero = true;
}

/// Which timestamp is the host's latest? Sends one that is far ahead, in a packet that the host accepts or not. Then
/// sends decoys with older timestamps, or continues from the new one.
void timestamp_jump(Draft& draft, std::string_view name) {
  const auto position = draft.signature_step();
  if (!position) return;
  Random& random = draft.random;
  draft.script.connections[draft.attacked].timestamps = true;
  const Packet target = draft.script.steps[*position].packet;
  const std::int64_t jump = random.between(1'000, 1'000'000'000);
  std::size_t at = *position;
  Packet packet;
  switch (random.below(6)) {
    case 0: packet = draft.data(target.at, 0); break;                           // an ACK
    case 1: packet = draft.data(target.at - random.between(1, 10), 20); break;  // begins within data already sent
    case 2: packet = draft.data(target.at - 5, random.between(0, 4)); break;    // completely sent before
    case 3: packet = draft.data(target.at + random.between(1, 5), 10); break;   // after a hole
    case 4: packet = draft.data(target.at + 1'000'000, 10); break;              // outside the window
    default: packet = draft.data(target.at - 1, 0); break;                      // a keep-alive
  }
  if (packet.payload.empty()) packet.flags = tcp::kAck;
  if (random.percent(15)) packet.flags = random.percent(50) ? tcp::kRst : tcp::kSyn;
  if (random.percent(15)) packet.ack_shift = random.between(-100'000, 100'000);
  packet.timestamp_shift = jump;
  draft.insert(at++, packet, name);
  if (random.percent(60)) {
    Packet decoy = draft.decoy_of(target);
    decoy.timestamp_shift = random.percent(50) ? 0 : jump - random.between(1, 1'000);
    draft.insert(at++, decoy, name);
  }
  if (random.percent(60))
    draft.insert(at, Step::Kind::clock, static_cast<std::uint32_t>(jump + random.between(-1, 1)), name);
}

/// Inserts bytes into the segment that the host treats as urgent.
void urgent(Draft& draft, std::string_view name) {
  const auto position = draft.signature_step();
  if (!position) return;
  Packet& packet = draft.change(*position, name);
  Random& random = draft.random;
  if (random.percent(50)) {
    packet.flags |= tcp::kUrg;
    constexpr std::array<std::uint16_t, 4> kPointers = {0, 1, 2, 0xffff};
    packet.urgent = random.percent(40) ? random.pick(std::span<const std::uint16_t>(kPointers))
                                       : static_cast<std::uint16_t>(random.between(0, length_of(packet) + 4));
    return;
  }
  // The stream gets one more byte, which is urgent.
  const std::int64_t before = packet.at;
  const std::int64_t at = before + random.between(0, length_of(packet) - 1);
  draft.lengthen_stream(at, {'!'});
  // The pointer is in the segment itself, or in an earlier one.
  const bool earlier = random.percent(40);
  Packet pointer = earlier ? draft.data(before, 0) : packet;
  Packet& holder = draft.script.steps[*position].packet;
  if (at < holder.at) {  // the byte is now the first of the segment
    holder = draft.data(at, length_of(holder) + 1);
  }
  if (earlier) {
    pointer.at = std::max<std::int64_t>(0, holder.at - random.between(0, 3));
    pointer.flags |= tcp::kUrg;
    pointer.urgent = static_cast<std::uint16_t>(at - pointer.at + 1);
    draft.insert(*position, pointer, name);
  } else {
    holder = draft.data(holder.at, length_of(holder));
    holder.flags |= tcp::kUrg;
    holder.urgent = static_cast<std::uint16_t>(at - holder.at + 1);
  }
}

/// Pointers to more urgent bytes than a sensor can store.
void many_urgent(Draft& draft, std::string_view name) {
  const auto position = draft.signature_step();
  if (!position) return;
  Random& random = draft.random;
  const std::size_t step = *position;
  const std::int64_t begin = draft.script.steps[step].packet.at;
  const std::int64_t length = length_of(draft.script.steps[step].packet);
  const std::uint64_t count = random.percent(60) ? 2 + random.below(4) : random.below(40);
  for (std::uint64_t i = 0; i < count; ++i) {
    Packet pointer = draft.data(begin, 0);
    pointer.flags = tcp::kAck | tcp::kUrg;
    pointer.urgent = static_cast<std::uint16_t>(1 + random.below(static_cast<std::uint64_t>(length) + 3));
    pointer.dies = random.percent(50);
    draft.insert(step, pointer, name);
  }
}

constexpr Move kMoves[] = {
    {"odd_flags", 2, For::tcp, &odd_flags},
    {"odd_timestamp", 3, For::tcp, &odd_timestamp},
    {"odd_ack", 2, For::tcp, &odd_ack},
    {"odd_options", 2, For::tcp, &odd_options},
    {"odd_window", 2, For::tcp, &odd_window},
    {"odd_empty", 4, For::tcp, &odd_empty},
    {"odd_checksum", 2, For::both, &odd_checksum},
    {"timestamp_jump", 4, For::tcp, &timestamp_jump},
    {"urgent", 4, For::tcp, &urgent},
    {"many_urgent", 1, For::tcp, &many_urgent},
};

}  // namespace

std::span<const Move> field_moves() { return kMoves; }

}  // namespace penstock::evasion
