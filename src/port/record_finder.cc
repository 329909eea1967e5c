// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "port/record_finder.h"

#include <algorithm>
#include <cstring>

#include "base/prefetch.h"

namespace penstock::port {

namespace {

constexpr std::size_t kHeader = 16, kLengthAt = 8, kWireLengthAt = 12;
// Programs seldom read beyond this: the ports behind IPv6 on Ethernet.
constexpr std::size_t kTested = 72;
constexpr std::size_t kMostPlaces = RecordFinder::kMostBlockBytes / kHeader + 1;
// For less, one scout is enough.
constexpr std::size_t kLeastShared = 64 << 10;

std::uint32_t word(const std::uint8_t* at) noexcept {
  std::uint32_t value = 0;
  std::memcpy(&value, at, sizeof value);
  return value;
}

/// The end of the record at `at`; 0 if it is incomplete or too long.
std::size_t end_of(std::span<const std::uint8_t> block, std::size_t at) noexcept {
  if (block.size() - at < kHeader) return 0;
  const std::uint32_t length = word(block.data() + at + kLengthAt);
  if (length > RecordFinder::kMostCaptured || length > block.size() - at - kHeader) return 0;
  return at + kHeader + length;
}

/// Whether a record may begin here: its lengths are usual ones, and its time is close to that of a record nearby.
bool is_plausible(std::span<const std::uint8_t> block, std::size_t at) noexcept {
  constexpr std::uint32_t kUsual = 65535, kDay = 86400;
  if (block.size() - at < kHeader) return false;
  const std::uint8_t* const header = block.data() + at;
  const std::uint32_t length = word(header + kLengthAt);
  return length <= kUsual && length <= word(header + kWireLengthAt) &&
         word(header) - word(block.data()) + kDay <= 2 * kDay;
}

/// The first place from which on two records may follow each other; `part_end` if there is none nearby.
std::size_t guess(std::span<const std::uint8_t> block, std::size_t from, std::size_t part_end) noexcept {
  constexpr std::size_t kNearby = 4096;
  for (std::size_t at = from; at < std::min(from + kNearby, part_end); ++at) {
    if (!is_plausible(block, at)) continue;
    const std::size_t end = end_of(block, at);
    if (end != 0 && is_plausible(block, end)) return at;
  }
  return part_end;
}

}  // namespace

RecordFinder::RecordFinder() : places_(kMostPlaces), found_(kMostPlaces + kScouts) {}

void RecordFinder::walk(std::span<const std::uint8_t> block, std::span<Scout> scouts) noexcept {
  for (bool any = true; any;) {
    any = false;
    for (Scout& scout : scouts) {
      if (scout.at >= scout.part_end) continue;
      const std::size_t end = end_of(block, scout.at);
      if (end == 0) {
        scout.part_end = 0;  // the scout stays at this record
        continue;
      }
      prefetch(block.data() + scout.at);
      prefetch(block.data() + scout.at + kTested);
      *scout.last++ = static_cast<std::uint32_t>(scout.at);
      scout.at = end;
      any = true;
    }
  }
}

void RecordFinder::find(std::span<const std::uint8_t> block) noexcept {
  block = block.first(std::min(block.size(), kMostBlockBytes));
  const std::size_t scout_count = block.size() < kLeastShared ? 1 : kScouts;
  const std::size_t part = block.size() / scout_count;
  std::array<Scout, kScouts> all;
  const std::span<Scout> scouts = std::span(all).first(scout_count);
  std::uint32_t* room = found_.data();
  for (std::size_t i = 0; i < scout_count; ++i) {
    const std::size_t from = i * part;
    const std::size_t to = i + 1 < scout_count ? from + part : block.size();
    scouts[i] = {i == 0 ? 0 : guess(block, from, to), to, room, room};
    room += (to - from) / kHeader + 1;
  }
  walk(block, scouts);

  std::uint32_t* out = places_.data();
  std::size_t at = 0;  // the end of the records so far
  for (std::size_t i = 0; i < scout_count; ++i) {
    const Scout& scout = scouts[i];
    const std::size_t to = i + 1 < scout_count ? (i + 1) * part : block.size();
    const std::uint32_t* next = scout.first;  // that the scout has found
    while (at < to) {
      while (next != scout.last && *next < at) ++next;
      if (next != scout.last && *next == at) {
        out = std::copy(next, static_cast<const std::uint32_t*>(scout.last), out);
        at = scout.at;
        if (scout.part_end == 0) break;
        continue;
      }
      const std::size_t end = end_of(block, at);
      if (end == 0) break;
      *out++ = static_cast<std::uint32_t>(at);
      at = end;
    }
    if (at < to) break;  // at an incomplete record
  }
  count_ = static_cast<std::size_t>(out - places_.data());
  end_ = count_ == 0 ? 0 : at;
}

}  // namespace penstock::port
