// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Attacks on the data of an established connection: segments reordered, sent again, overlapping, of any size.

#include <algorithm>
#include <array>

#include "evasion/draft.h"

namespace penstock::evasion {

namespace {

using For = Move::For;

/// Consecutive segments arrive in another order.
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

/// Splits a segment into two or more.
void cut(Draft& draft, std::string_view) {
  const auto position = draft.signature_step();
  if (!position) return;
  const Packet whole = draft.script.steps[*position].packet;
  const std::int64_t size = draft.random.percent(50) ? 1 : draft.random.between(1, 5);
  if (length_of(whole) <= size) return;
  std::vector<Packet> parts;
  std::int64_t at = whole.at;
  for (int i = 0; i < 24 && at < whole.at + length_of(whole); ++i) {
    const std::int64_t length =
        i == 23 ? whole.at + length_of(whole) - at : std::min(size, whole.at + length_of(whole) - at);
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

/// The same bytes again, in segments with other boundaries.
void resend_same(Draft& draft, std::string_view name) {
  const auto position = draft.any_genuine();
  if (!position) return;
  const Packet& first = draft.script.steps[*position].packet;
  const std::int64_t begin = std::max<std::int64_t>(0, first.at - draft.random.between(0, 20));
  const std::int64_t length = std::max<std::int64_t>(1, length_of(first) + draft.random.between(-10, 20));
  draft.insert(*position + draft.random.below(4), draft.data(begin, std::min(length, draft.stream_size() - begin)),
               name);
}

/// Other bytes at the position of data that were sent and mostly acknowledged.
void resend_changed(Draft& draft, std::string_view name) {
  const auto position = draft.signature_step();
  if (!position) return;
  const Packet first = draft.script.steps[*position].packet;
  const std::int64_t begin = first.at - (draft.random.percent(50) ? 0 : draft.random.between(0, 6));
  const std::int64_t end = first.at + length_of(first) + (draft.random.percent(70) ? 0 : draft.random.between(0, 6));
  draft.insert(*position + 1 + draft.random.below(3), draft.decoy(begin, end - begin), name);
}

/// A segment that begins with bytes which the host already has, with other contents.
void begins_earlier(Draft& draft, std::string_view name) {
  const auto position = draft.signature_step();
  if (!position) return;
  Packet& packet = draft.change(*position, name);
  const std::int64_t by = draft.random.percent(60) ? 1 : draft.random.between(1, 30);
  packet.payload.insert(packet.payload.begin(), static_cast<std::size_t>(by), std::uint8_t{'#'});
  packet.at -= by;
}

/// After a hole, segments and decoys overlap; the data that fill the hole come last.
void overlap(Draft& draft, std::string_view name) {
  const auto positions = draft.genuine();
  if (positions.size() < 2) return;
  Random& random = draft.random;
  const std::size_t hole = random.below(positions.size() - 1);
  const std::size_t last = std::min(positions.size() - 1, hole + 1 + random.below(4));
  Packet late = draft.script.steps[positions[hole]].packet;
  const std::int64_t begin = draft.script.steps[positions[hole + 1]].packet.at;
  const Packet& last_packet = draft.script.steps[positions[last]].packet;
  const std::int64_t end = last_packet.at + length_of(last_packet);
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
      // A little more or less than a segment, because that affects which bytes are kept.
      const std::int64_t from = std::max(begin, step.packet.at + random.between(-2, 2));
      const std::int64_t to = step.packet.at + length_of(step.packet) + random.between(-2, 2);
      decoy = draft.decoy(from, std::max<std::int64_t>(1, to - from));
    } else {
      const std::int64_t from = random.between(begin, end - 1);
      decoy = draft.decoy(from, random.between(1, std::min<std::int64_t>(end - from + 3, 60)));
    }
    if (random.percent(30)) {  // the stream's own bytes in other boundaries: some segment must deliver them
      const Packet own = draft.data(decoy.at, length_of(decoy));
      draft.insert(near, own, name);
    } else {
      draft.insert(near + random.below(2), decoy, name);
    }
  }
}

/// Many segments far ahead of a hole: a host's buffer is limited by the bytes of a window, not by segments.
void fill_buffer(Draft& draft, std::string_view name) {
  const auto position = draft.signature_step();
  if (!position) return;
  const Packet target = draft.script.steps[*position].packet;
  const std::int64_t begin = target.at + 1;
  const std::uint64_t count = draft.random.percent(20) ? 100 + draft.random.below(500) : 4 + draft.random.below(40);
  const std::int64_t size = draft.random.percent(60) ? 1 : draft.random.between(1, 1400);
  std::size_t at = *position;
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::int64_t from =
        begin + length_of(target) + static_cast<std::int64_t>(i) * (size + 1) + draft.random.between(0, 1);
    draft.insert(at++, draft.data(from, size), name);
  }
  Packet decoy = draft.decoy(begin, std::max<std::int64_t>(1, length_of(target) - 1));
  draft.insert(at, decoy, name);
}

/// More versions of the same bytes than a sensor can store: first one that the host does not get, then the stream's own
/// after a hole, then others, all different, that the host does not need.
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
    if (random.percent(50)) {
      const auto first = static_cast<std::uint8_t>('0' + random.below(70));
      for (std::uint8_t& byte : packet.payload) byte = static_cast<std::uint8_t>(first + random.below(8));
    } else {
      packet.payload = pieces_of(draft.script.signature_text, random, packet.payload.size());
    }
    packet.dies = hidden;
    return packet;
  };
  const std::uint64_t most = random.percent(50) ? 30 : 100;
  const std::uint64_t before = random.percent(50) ? 1 : random.below(most);
  const std::uint64_t after = random.percent(30) ? 1 : random.below(most);
  for (std::uint64_t i = 0; i < before; ++i) draft.insert(at++, other(true), name);
  draft.insert(at++, draft.data(begin, length), name);
  for (std::uint64_t i = 0; i < after; ++i) draft.insert(at++, other(random.percent(50)), name);
  if (random.percent(70)) draft.change(at, name).payload.resize(1);  // only the hole
}

void ahead_of_window(Draft& draft, std::string_view name) {
  const auto position = draft.signature_step();
  if (!position) return;
  const Packet target = draft.script.steps[*position].packet;
  constexpr std::array<std::int64_t, 6> kAhead = {14600, 29200, 65535, 65536, 1 << 20, 0x7fffffff};
  Packet packet = draft.decoy_of(target);
  if (draft.random.percent(50)) {
    packet.at += draft.random.pick(std::span<const std::int64_t>(kAhead)) + draft.random.between(-3, 3);
  } else {  // begins within the window, ends outside
    packet = draft.decoy(target.at, draft.random.between(20'000, 60'000));
  }
  draft.insert(*position, packet, name);
}

/// One byte, or none, before the next sequence number.
void keep_alive(Draft& draft, std::string_view name) {
  const auto position = draft.any_genuine();
  if (!position) return;
  const Packet target = draft.script.steps[*position].packet;
  Packet probe = draft.decoy(target.at - 1, draft.random.between(0, 1));
  probe.flags = tcp::kAck;
  draft.insert(*position + draft.random.below(2), probe, name);
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
  // The segment at `at` already has them unless it moved; they are sent separately anyway.
  Packet& target = draft.script.steps[*position].packet;
  if (target.at == at) {
    target.payload.erase(target.payload.begin(),
                         target.payload.begin() + std::min<std::ptrdiff_t>(size, std::ssize(target.payload)));
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

constexpr Move kMoves[] = {
    {"reorder", 8, For::tcp, &reorder},
    {"cut", 8, For::tcp, &cut},
    {"resend_same", 5, For::tcp, &resend_same},
    {"resend_changed", 6, For::tcp, &resend_changed},
    {"begins_earlier", 6, For::tcp, &begins_earlier},
    {"overlap", 10, For::tcp, &overlap},
    {"fill_buffer", 1, For::tcp, &fill_buffer},
    {"many_versions", 1, For::tcp, &many_versions},
    {"ahead_of_window", 3, For::tcp, &ahead_of_window},
    {"keep_alive", 3, For::tcp, &keep_alive},
    {"full_window", 2, For::tcp, &full_window},
};

}  // namespace

std::span<const Move> segment_moves() { return kMoves; }

}  // namespace penstock::evasion
