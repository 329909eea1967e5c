// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Attacks on the data of an established connection: segments in another order, sent again, over each other, and decoys
// that a host does not take, for one defect each.

#include <algorithm>
#include <array>

#include "evasion/generator.h"

namespace penstock::evasion {

namespace {

using For = Move::For;

std::int64_t length_of(const Packet& packet) { return static_cast<std::int64_t>(packet.payload.size()); }

/// Segments that follow each other arrive in another order.
void reorder(Draft& draft, std::string_view) {
  const auto positions = draft.genuine();
  if (positions.size() < 2) return;
  const std::size_t from = draft.random.below(positions.size() - 1);
  const std::size_t count = 2 + draft.random.below(std::min<std::size_t>(positions.size() - from, 6) - 1);
  for (std::size_t i = count - 1; i > 0; --i) {
    const std::size_t j = draft.random.below(i + 1);
    std::swap(draft.script.steps[positions[from + i]].packet, draft.script.steps[positions[from + j]].packet);
  }
}

/// A segment is cut in two or more.
void cut(Draft& draft, std::string_view) {
  const auto position = draft.signature_step();
  if (!position) return;
  const Packet whole = draft.script.steps[*position].packet;
  const std::int64_t size = draft.random.percent(50) ? 1 : draft.random.between(1, 5);
  if (length_of(whole) <= size) return;
  std::vector<Packet> parts;
  std::int64_t at = whole.at;
  for (int i = 0; i < 24 && at < whole.at + length_of(whole); ++i) {
    const std::int64_t length = i == 23 ? whole.at + length_of(whole) - at : std::min(size, whole.at + length_of(whole) - at);
    Packet part = whole;
    const auto from = whole.payload.begin() + (at - whole.at);
    part.payload.assign(from, from + length);
    part.at = at;
    at += length;
    parts.push_back(std::move(part));
  }
  if (draft.random.percent(30)) std::reverse(parts.begin(), parts.end());
  draft.erase(*position);
  for (std::size_t i = 0; i < parts.size(); ++i) {
    draft.insert(*position + i, std::move(parts[i]), {});
    draft.script.steps[*position + i].genuine = true;
  }
}

/// The same bytes again, in segments with other bounds.
void resend_same(Draft& draft, std::string_view name) {
  const auto position = draft.any_genuine();
  if (!position) return;
  const Packet& first = draft.script.steps[*position].packet;
  const std::int64_t begin = std::max<std::int64_t>(0, first.at - draft.random.between(0, 20));
  const std::int64_t length = std::max<std::int64_t>(1, length_of(first) + draft.random.between(-10, 20));
  draft.insert(*position + draft.random.below(4), draft.data(begin, std::min(length, draft.stream_size() - begin)), name);
}

/// Other bytes in the place of what was sent, and mostly acknowledged.
void resend_changed(Draft& draft, std::string_view name) {
  const auto position = draft.signature_step();
  if (!position) return;
  const Packet first = draft.script.steps[*position].packet;
  const std::int64_t begin = first.at - (draft.random.percent(50) ? 0 : draft.random.between(0, 6));
  const std::int64_t end = first.at + length_of(first) + (draft.random.percent(70) ? 0 : draft.random.between(0, 6));
  draft.insert(*position + 1 + draft.random.below(3), draft.decoy(begin, end - begin), name);
}

/// Bytes in front of a segment that the host already has, and others than it has.
void begins_earlier(Draft& draft, std::string_view name) {
  const auto position = draft.signature_step();
  if (!position) return;
  Packet& packet = draft.change(*position, name);
  const std::int64_t by = draft.random.percent(60) ? 1 : draft.random.between(1, 30);
  packet.payload.insert(packet.payload.begin(), static_cast<std::size_t>(by), std::uint8_t{'#'});
  packet.at -= by;
}

/// Behind a hole, segments and decoys lie over each other; what fills the hole comes last.
void overlap(Draft& draft, std::string_view name) {
  const auto positions = draft.genuine();
  if (positions.size() < 2) return;
  Random& random = draft.random;
  const std::size_t hole = random.below(positions.size() - 1);
  const std::size_t last = std::min(positions.size() - 1, hole + 1 + random.below(4));
  Packet late = draft.script.steps[positions[hole]].packet;
  const std::int64_t begin = draft.script.steps[positions[hole + 1]].packet.at;
  const Packet& behind = draft.script.steps[positions[last]].packet;
  const std::int64_t end = behind.at + length_of(behind);
  if (begin >= end) return;
  draft.insert(positions[last] + 1, late, {});
  draft.script.steps[positions[last] + 1].genuine = true;
  draft.erase(positions[hole]);
  const std::uint64_t decoys = 1 + random.below(3);
  for (std::uint64_t i = 0; i < decoys; ++i) {
    const std::size_t near = positions[hole] + random.below(positions[last] - positions[hole] + 1);
    const Step& step = draft.script.steps[std::min(near, draft.script.steps.size() - 1)];
    Packet decoy;
    if (step.genuine && random.percent(70)) {
      // A little more or less than a segment, as what wins depends on it.
      const std::int64_t from = std::max(begin, step.packet.at + random.between(-2, 2));
      const std::int64_t to = step.packet.at + length_of(step.packet) + random.between(-2, 2);
      decoy = draft.decoy(from, std::max<std::int64_t>(1, to - from));
    } else {
      const std::int64_t from = random.between(begin, end - 1);
      decoy = draft.decoy(from, random.between(1, std::min<std::int64_t>(end - from + 3, 60)));
    }
    if (random.percent(30)) {  // the stream's own bytes in other bounds: some segment must bring them
      const Packet own = draft.data(decoy.at, length_of(decoy));
      draft.insert(near, own, name);
    } else {
      draft.insert(near + random.below(2), decoy, name);
    }
  }
}

/// Segments far ahead of a hole, many of them: a host has room for a window of bytes, not of segments.
void fill_buffer(Draft& draft, std::string_view name) {
  const auto position = draft.signature_step();
  if (!position) return;
  const Packet target = draft.script.steps[*position].packet;
  const std::int64_t begin = target.at + 1;
  const std::uint64_t count = draft.random.percent(20) ? 100 + draft.random.below(500) : 4 + draft.random.below(40);
  const std::int64_t size = draft.random.percent(60) ? 1 : draft.random.between(1, 1400);
  std::size_t at = *position;
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::int64_t from = begin + length_of(target) + static_cast<std::int64_t>(i) * (size + 1) + draft.random.between(0, 1);
    draft.insert(at++, draft.data(from, size), name);
  }
  Packet decoy = draft.decoy(begin, std::max<std::int64_t>(1, length_of(target) - 1));
  draft.insert(at, decoy, name);
}

void ahead_of_window(Draft& draft, std::string_view name) {
  const auto position = draft.signature_step();
  if (!position) return;
  const Packet target = draft.script.steps[*position].packet;
  constexpr std::array<std::int64_t, 6> kAhead = {14600, 29200, 65535, 65536, 1 << 20, 0x7fffffff};
  Packet packet = draft.decoy_of(target);
  if (draft.random.percent(50)) {
    packet.at += draft.random.pick(std::span<const std::int64_t>(kAhead)) + draft.random.between(-3, 3);
  } else {  // begins in the window and ends outside of it
    packet = draft.decoy(target.at, draft.random.between(20'000, 60'000));
  }
  draft.insert(*position, packet, name);
}

/// One byte, or none, in front of what is next.
void keep_alive(Draft& draft, std::string_view name) {
  const auto position = draft.any_genuine();
  if (!position) return;
  const Packet target = draft.script.steps[*position].packet;
  Packet probe = draft.decoy(target.at - 1, draft.random.between(0, 1));
  probe.flags = tcp::kAck;
  draft.insert(*position + draft.random.below(2), probe, name);
}

/// The segment's bytes with others among them that the host takes for urgent.
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
  // The stream gets one more byte, which goes another way.
  const std::int64_t before = packet.at;
  const std::int64_t at = before + random.between(0, length_of(packet) - 1);
  draft.lengthen_stream(at, {'!'});
  // The pointer is in the segment itself, or in one before it.
  const bool earlier = random.percent(40);
  Packet pointer = earlier ? draft.data(before, 0) : packet;
  Packet& holder = draft.script.steps[*position].packet;
  if (at < holder.at) {  // the byte became the segment's first
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

void fin_early(Draft& draft, std::string_view name) {
  const auto position = draft.any_genuine();
  if (!position) return;
  const Packet target = draft.script.steps[*position].packet;
  Random& random = draft.random;
  Packet fin = draft.decoy(target.at, random.percent(50) ? 0 : random.between(1, 8));
  fin.flags = tcp::kFin | (random.percent(85) ? tcp::kAck : std::uint8_t{0});
  switch (random.below(6)) {
    case 0: fin.dies = true; break;
    case 1: fin.wrong_checksum = true; break;
    case 2: fin.at += random.between(70'000, 1 << 20); break;         // outside of the window
    case 3: fin.at = random.between(target.at + 1, draft.stream_size()); break;  // behind a hole
    case 4: fin.at -= random.between(1, 2); break;
    default: fin.ack_shift = random.between(-3, 100'000); break;
  }
  draft.insert(*position, fin, name);
}

/// So many versions of the same bytes that a sensor cannot keep all of them: one that the host does not get first, then
/// the stream's own behind a hole, then others, each different, that the host has no use for.
void many_versions(Draft& draft, std::string_view name) {
  const auto position = draft.signature_step();
  if (!position) return;
  Random& random = draft.random;
  const Packet target = draft.script.steps[*position].packet;
  if (length_of(target) < 2) return;
  const std::int64_t begin = target.at + 1, length = length_of(target) - 1;
  std::size_t at = *position;
  const auto other = [&](bool hidden) {
    Packet packet = draft.data(begin, length);
    const std::uint8_t first = static_cast<std::uint8_t>('0' + random.below(70));
    for (std::uint8_t& byte : packet.payload) byte = static_cast<std::uint8_t>(first + random.below(8));
    packet.dies = hidden;
    return packet;
  };
  const std::uint64_t before = random.percent(50) ? 1 : random.below(100);
  const std::uint64_t after = random.percent(30) ? 1 : random.below(100);
  for (std::uint64_t i = 0; i < before; ++i) draft.insert(at++, other(true), name);
  draft.insert(at++, draft.data(begin, length), name);
  for (std::uint64_t i = 0; i < after; ++i) draft.insert(at++, other(random.percent(50)), name);
  if (random.percent(70)) draft.change(at, name).payload.resize(1);  // the hole alone
}

/// Pointers to so many urgent bytes that a sensor cannot keep all of them.
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

/// Which timestamp did the host take for the latest? One that is far ahead, in a packet that it takes or not; then
/// decoys with older ones, or its clock goes on from there.
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
    case 0: packet = draft.data(target.at, 0); break;                            // an ACK
    case 1: packet = draft.data(target.at - random.between(1, 10), 20); break;   // begins in what was sent
    case 2: packet = draft.data(target.at - 5, random.between(0, 4)); break;     // all of it was
    case 3: packet = draft.data(target.at + random.between(1, 5), 10); break;    // behind a hole
    case 4: packet = draft.data(target.at + 1'000'000, 10); break;               // outside of the window
    default: packet = draft.data(target.at - 1, 0); break;                       // a keep-alive
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
  if (random.percent(60)) draft.insert(at, Step::Kind::clock, static_cast<std::uint32_t>(jump + random.between(-1, 1)), name);
}

/// Checksums of 0 may be written in two ways.
void odd_checksum(Draft& draft, std::string_view name) {
  const auto position = draft.signature_step();
  if (position) draft.change(*position, name).minus_zero = true;
}

void host_speaks(Draft& draft, std::string_view name) {
  const auto position = draft.any_genuine();
  if (!position) return;
  draft.insert_write(*position, std::string(static_cast<std::size_t>(draft.random.between(1, 2000)), '.'), name);
}

/// The host's application says that it is done, and goes on reading.
void host_shuts(Draft& draft, std::string_view name) {
  const auto position = draft.any_genuine();
  if (!position) return;
  draft.insert(*position, Step::Kind::host_shuts, 0, name);
  if (!draft.random.percent(50)) return;
  Packet fin;  // and the attacker seems to be, too
  fin.connection = draft.attacked;
  fin.at = draft.stream_size() + draft.random.between(0, 10);
  fin.flags = tcp::kFin | tcp::kAck;
  if (draft.random.percent(50)) {
    fin.dies = true;
    fin.at = draft.script.steps[*position + 1].packet.at;
  }
  draft.insert(*position + 1 + draft.random.below(2), fin, name);
}

void idle(Draft& draft, std::string_view name) {
  const auto position = draft.any_genuine();
  if (!position) return;
  constexpr std::array<std::uint32_t, 5> kSeconds = {11, 61, 301, 601, 3601};
  draft.insert(*position, Step::Kind::pause, draft.random.pick(std::span<const std::uint32_t>(kSeconds)), name);
}

void short_pause(Draft& draft, std::string_view name) {
  const auto position = draft.any_genuine();
  if (!position) return;
  draft.insert(*position, Step::Kind::pause, static_cast<std::uint32_t>(draft.random.between(1, 9)), name);
}

// ---- Decoys: in the place of a segment, ahead of it or behind it, and not taken for one reason.

template <typename Spoil>
void add_decoy(Draft& draft, std::string_view name, Spoil&& spoil) {
  const auto position = draft.signature_step();
  if (!position) return;
  Random& random = draft.random;
  const Packet target = draft.script.steps[*position].packet;
  Packet decoy = draft.decoy_of(target);
  if (random.percent(25)) {
    const std::int64_t begin = target.at + random.between(-8, 8);
    decoy = draft.decoy(begin, random.between(1, 40));
  }
  spoil(decoy, random);
  std::size_t at = *position;
  if (random.percent(20)) at = std::max(draft.established(), at - std::min<std::size_t>(at, random.below(6)));
  if (random.percent(10)) at = *position + 1;
  draft.insert(at, decoy, name);
}

void decoy_checksum(Draft& draft, std::string_view name) {
  add_decoy(draft, name, [](Packet& packet, Random&) { packet.wrong_checksum = true; });
}
void decoy_ip_checksum(Draft& draft, std::string_view name) {
  if (draft.script.v6) return;
  add_decoy(draft, name, [](Packet& packet, Random&) { packet.wrong_ip_checksum = true; });
}
void decoy_dies(Draft& draft, std::string_view name) {
  add_decoy(draft, name, [](Packet& packet, Random&) { packet.dies = true; });
}
void decoy_old_timestamp(Draft& draft, std::string_view name) {
  add_decoy(draft, name, [](Packet& packet, Random& random) {
    constexpr std::array<std::int64_t, 6> kOld = {-2, -10, -1000, -1'000'000, -0x7fffffffLL, -0x7ffffff0LL};
    packet.timestamp_shift = random.pick(std::span<const std::int64_t>(kOld)) - 5000;
  });
}
void decoy_timestamp_zero(Draft& draft, std::string_view name) {
  add_decoy(draft, name, [](Packet& packet, Random&) { packet.timestamp_zero = true; });
}
void decoy_wrong_ack(Draft& draft, std::string_view name) {
  add_decoy(draft, name, [](Packet& packet, Random& random) {
    constexpr std::array<std::int64_t, 9> kShifts = {1, 2, 1000, 65536, 0x7fffffff, -2, -70'000, -1'000'000, -0x7fffffff};
    packet.ack_shift = random.pick(std::span<const std::int64_t>(kShifts)) + random.between(-1, 1);
  });
}
void decoy_without_ack(Draft& draft, std::string_view name) {
  add_decoy(draft, name, [](Packet& packet, Random& random) {
    constexpr std::array<std::uint8_t, 5> kFlags = {0, tcp::kPsh, tcp::kUrg, tcp::kFin, tcp::kPsh | tcp::kUrg | tcp::kEce};
    packet.flags = random.pick(std::span<const std::uint8_t>(kFlags));
    if (random.percent(50)) packet.acknowledges = Acknowledges::zero;
  });
}
void decoy_syn(Draft& draft, std::string_view name) {
  add_decoy(draft, name, [](Packet& packet, Random& random) {
    packet.flags |= tcp::kSyn;
    if (random.percent(40)) packet.flags = tcp::kSyn;
    if (random.percent(40)) packet.at -= 1;
    packet.handshake_options = random.percent(30);
  });
}
void decoy_rst(Draft& draft, std::string_view name) {
  add_decoy(draft, name, [](Packet& packet, Random& random) {
    packet.flags = random.percent(60) ? tcp::kRst | tcp::kAck : tcp::kRst;
    if (random.percent(60)) packet.payload.clear();
    constexpr std::array<std::int64_t, 10> kShifts = {-1, 1, 2, 100, -100, 1000, 60'000, 70'000, -70'000, 1 << 20};
    switch (random.below(5)) {
      case 0: packet.dies = true; break;
      case 1: packet.wrong_checksum = true; break;
      case 2: packet.timestamp_shift = -100'000; [[fallthrough]];
      default: packet.at += random.pick(std::span<const std::int64_t>(kShifts)); break;
    }
  });
}
void decoy_md5(Draft& draft, std::string_view name) {
  add_decoy(draft, name, [](Packet& packet, Random& random) {
    if (random.percent(70)) {
      packet.options = {19, 18, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16};
    } else {
      packet.options = {29, 16, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14};  // TCP-AO
    }
  });
}
void decoy_data_offset(Draft& draft, std::string_view name) {
  add_decoy(draft, name, [](Packet& packet, Random& random) {
    packet.data_offset = static_cast<std::uint8_t>(random.percent(60) ? random.below(5) : 15);
    if (*packet.data_offset == 15 && packet.payload.size() > 30) packet.payload.resize(30);
  });
}
void decoy_ip_length(Draft& draft, std::string_view name) {
  add_decoy(draft, name,
            [](Packet& packet, Random& random) { packet.ip_length_shift = static_cast<int>(random.between(-30, 40)); });
}

// ---- What a host takes although it is odd

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
  const std::array<Bytes, 7> options = {Bytes{1, 1, 1}, Bytes{0, 8, 10, 9}, Bytes{8, 0},          Bytes{8, 255, 3, 4},
                                        Bytes{3, 3, 14}, Bytes{254, 4, 0xf9, 0x89}, Bytes{34, 2, 1, 1}};
  draft.change(*position, name).options = draft.random.pick(std::span<const Bytes>(options));
}
void odd_window(Draft& draft, std::string_view name) {
  const auto position = draft.any_genuine();
  if (!position) return;
  Packet& packet = draft.change(*position, name);
  constexpr std::array<std::uint16_t, 4> kWindows = {0, 1, 100, 30000};
  packet.window = draft.random.pick(std::span<const std::uint16_t>(kWindows));
}

/// A segment without bytes that is meant to spoil the sensor's idea of timestamps, windows or numbers.
void odd_empty(Draft& draft, std::string_view name) {
  const auto position = draft.any_genuine();
  if (!position) return;
  Random& random = draft.random;
  const Packet target = draft.script.steps[*position].packet;
  Packet packet = draft.data(target.at + (random.percent(60) ? 0 : random.between(-3, 3)), 0);
  packet.flags = tcp::kAck;
  switch (random.below(6)) {
    case 0: packet.timestamp_shift = random.between(1000, 0x7fffff00); packet.wrong_checksum = random.percent(50); break;
    case 1: packet.timestamp_shift = random.between(1000, 0x7fffff00); packet.dies = true; break;
    case 2: packet.window = static_cast<std::uint16_t>(random.below(3)); break;
    case 3: packet.at = target.at + random.between(1, 100'000); break;
    case 4: packet.ack_shift = random.between(-2, 100'000); break;
    default: packet.window = 0; packet.dies = true; break;
  }
  draft.insert(*position, packet, name);
}

/// A server with a small buffer that nobody reads: the window closes, is probed, and opens again.
void full_window(Draft& draft, std::string_view name) {
  const auto position = draft.any_genuine();
  if (!position || draft.script.role != HostRole::server) return;
  Random& random = draft.random;
  draft.script.host_port = random.percent(50) ? std::uint16_t{81} : std::uint16_t{82};
  draft.script.reads_at_once = false;
  const std::int64_t at = draft.script.steps[*position].packet.at;
  const Bytes bytes(static_cast<std::size_t>(random.between(500, 9000)), '~');
  constexpr std::int64_t kSize = 1000;
  std::size_t step = *position;
  draft.lengthen_stream(at, bytes);
  const auto size = static_cast<std::int64_t>(bytes.size());
  // The segment at `at` has them now, unless it moved; they come by themselves anyway.
  Packet& target = draft.script.steps[*position].packet;
  if (target.at == at) {
    target.payload.erase(target.payload.begin(), target.payload.begin() + std::min<std::ptrdiff_t>(size, std::ssize(target.payload)));
    target.at = at + size;
  }
  const Packet after = draft.script.steps[*position].packet;
  for (std::int64_t from = 0; from < size; from += kSize) {
    draft.insert(step++, draft.data(at + from, std::min(kSize, size - from)), name);
  }
  const std::uint64_t probes = random.below(4);
  for (std::uint64_t i = 0; i < probes; ++i) {
    draft.insert(step++, draft.decoy(after.at + random.between(-1, 1), random.between(1, 3)), name);
  }
  draft.insert(step++, Step::Kind::host_reads, 0, name);
  if (random.percent(50)) draft.insert(step++, Step::Kind::resend, draft.attacked, name);
}

/// ACKs of the attacker's while the host answers.
void answer_acks(Draft& draft, std::string_view name) {
  std::vector<std::size_t> writes;
  for (std::size_t i = 0; i < draft.script.steps.size(); ++i) {
    if (draft.script.steps[i].kind == Step::Kind::host_writes) writes.push_back(i);
  }
  if (writes.empty()) return;
  Random& random = draft.random;
  const std::size_t position = writes[random.below(writes.size())];
  Packet ack = draft.data(draft.stream_size() + (random.percent(70) ? 0 : random.between(-2, 2)), 0);
  ack.flags = tcp::kAck;
  constexpr std::array<std::int64_t, 8> kShifts = {1, 100, 1000, 100'000, -1, -100, -100'000, 0x7fffffff};
  ack.ack_shift = random.pick(std::span<const std::int64_t>(kShifts));
  if (random.percent(30)) ack.flags = random.percent(50) ? tcp::kFin | tcp::kAck : tcp::kRst | tcp::kAck;
  switch (random.below(4)) {
    case 0: ack.dies = true; break;
    case 1: ack.wrong_checksum = true; break;
    case 2: ack.window = static_cast<std::uint16_t>(random.below(3)); break;
    default: break;
  }
  draft.insert(position + random.below(2), ack, name);
}

constexpr Move kMoves[] = {
    {"reorder", 8, For::tcp, &reorder},
    {"cut", 8, For::tcp, &cut},
    {"resend_same", 5, For::tcp, &resend_same},
    {"resend_changed", 6, For::tcp, &resend_changed},
    {"begins_earlier", 6, For::tcp, &begins_earlier},
    {"overlap", 10, For::tcp, &overlap},
    {"fill_buffer", 1, For::tcp, &fill_buffer},
    {"ahead_of_window", 3, For::tcp, &ahead_of_window},
    {"keep_alive", 3, For::tcp, &keep_alive},
    {"urgent", 4, For::tcp, &urgent},
    {"fin_early", 5, For::tcp, &fin_early},
    {"many_versions", 1, For::tcp, &many_versions},
    {"many_urgent", 1, For::tcp, &many_urgent},
    {"timestamp_jump", 4, For::tcp, &timestamp_jump},
    {"odd_checksum", 2, For::both, &odd_checksum},
    {"host_speaks", 4, For::tcp, &host_speaks},
    {"host_shuts", 3, For::tcp, &host_shuts},
    {"idle", 0, For::tcp, &idle},
    {"short_pause", 2, For::tcp, &short_pause},
    {"full_window", 2, For::tcp, &full_window},
    {"answer_acks", 3, For::tcp, &answer_acks},
    {"decoy_checksum", 4, For::tcp, &decoy_checksum},
    {"decoy_ip_checksum", 2, For::tcp, &decoy_ip_checksum},
    {"decoy_dies", 4, For::tcp, &decoy_dies},
    {"decoy_old_timestamp", 4, For::tcp, &decoy_old_timestamp},
    {"decoy_timestamp_zero", 2, For::tcp, &decoy_timestamp_zero},
    {"decoy_wrong_ack", 4, For::tcp, &decoy_wrong_ack},
    {"decoy_without_ack", 3, For::tcp, &decoy_without_ack},
    {"decoy_syn", 3, For::tcp, &decoy_syn},
    {"decoy_rst", 5, For::tcp, &decoy_rst},
    {"decoy_md5", 2, For::tcp, &decoy_md5},
    {"decoy_data_offset", 2, For::tcp, &decoy_data_offset},
    {"decoy_ip_length", 2, For::tcp, &decoy_ip_length},
    {"odd_flags", 2, For::tcp, &odd_flags},
    {"odd_timestamp", 3, For::tcp, &odd_timestamp},
    {"odd_ack", 2, For::tcp, &odd_ack},
    {"odd_options", 2, For::tcp, &odd_options},
    {"odd_window", 2, For::tcp, &odd_window},
    {"odd_empty", 4, For::tcp, &odd_empty},
};

}  // namespace

std::span<const Move> segment_moves() { return kMoves; }

}  // namespace penstock::evasion
