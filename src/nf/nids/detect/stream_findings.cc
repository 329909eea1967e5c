// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "nf/nids/detect/stream_findings.h"

#include <algorithm>
#include <new>

namespace penstock::nids {

void StreamFindings::note(const stack::Flow& flow, stack::Direction direction, const Segment& segment,
                          std::span<const std::uint32_t> literals) noexcept {
  if (entries_.empty() && !take_memory()) return;
  const std::uint64_t key = key_of(flow, direction);
  Entry& entry = entries_[place_of(key)];
  if (entry.flow != key) {
    // Whatever is in the stream now may have come in packets that nobody noted.
    entry.flow = key;
    entry.floor = segment.highest;
    entry.segment_count = entry.literal_count = 0;
    return;
  }
  const std::uint64_t begin = std::max(segment.begin, entry.floor);
  if (begin >= segment.end) return;
  if (entry.segment_count == kSegments) {
    // The older half goes. Segments lie in the order in which they came.
    std::uint64_t floor = entry.floor;
    for (std::size_t i = 0; i < kSegments / 2; ++i) {
      floor = std::max(floor, entry.segments[i].begin + entry.segments[i].length);
    }
    forget_before(entry, floor);
  }
  const bool no_room = entry.literal_count + literals.size() > entry.literals.size();
  if (no_room) forget_before(entry, segment.highest);
  const std::uint64_t from = std::max(begin, entry.floor);
  if (from >= segment.end) return;
  entry.segments[entry.segment_count++] = {from, static_cast<std::uint32_t>(segment.end - from), segment.known};
  for (const std::uint32_t literal : literals) {
    entry.literals[entry.literal_count++] = {literal, static_cast<std::uint32_t>(segment.end)};
  }
}

/// Where the system has none nothing is known, and all is scanned here.
bool StreamFindings::take_memory() noexcept {
  try {
    entries_.resize(std::size_t{1} << bits_);
    return true;
  } catch (const std::bad_alloc&) {
    return false;
  }
}

void StreamFindings::forget_before(Entry& entry, std::uint64_t floor) noexcept {
  entry.floor = std::max(entry.floor, floor);
  std::uint8_t kept = 0;
  for (std::size_t i = 0; i < entry.segment_count; ++i) {
    Entry::Range range = entry.segments[i];
    const std::uint64_t end = range.begin + range.length;
    if (end <= entry.floor) continue;
    range.begin = std::max(range.begin, entry.floor);
    range.length = static_cast<std::uint32_t>(end - range.begin);
    entry.segments[kept++] = range;
  }
  entry.segment_count = kept;
  kept = 0;
  for (std::size_t i = 0; i < entry.literal_count; ++i) {
    // A stream's waiting bytes are far fewer than 2^31.
    const auto ahead = static_cast<std::int32_t>(entry.literals[i].end - static_cast<std::uint32_t>(entry.floor));
    if (ahead > 0) entry.literals[kept++] = entry.literals[i];
  }
  entry.literal_count = kept;
}

bool StreamFindings::look_up(const stack::Flow& flow, stack::Direction direction, std::uint64_t begin,
                             std::uint64_t end, Known& known) const noexcept {
  if (entries_.empty()) return false;
  const std::uint64_t key = key_of(flow, direction);
  const Entry& entry = entries_[place_of(key)];
  if (entry.flow != key || begin < entry.floor) return false;

  std::array<Entry::Range, kSegments> segments;
  std::size_t count = 0;
  for (std::size_t i = 0; i < entry.segment_count; ++i) {
    const Entry::Range& range = entry.segments[i];
    if (range.begin >= end || range.begin + range.length <= begin) continue;
    if (!range.known) return false;
    segments[count++] = range;
  }
  std::sort(segments.begin(), segments.begin() + count,
            [](const Entry::Range& a, const Entry::Range& b) { return a.begin < b.begin; });

  known.literal_count = known.seam_count = 0;
  std::uint64_t covered = begin;
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint64_t from = segments[i].begin;
    const std::uint64_t to = from + segments[i].length;
    if (from > covered) return false;
    covered = std::max(covered, to);
    if (from > begin) known.seams[known.seam_count++] = from;
    if (to < end) known.seams[known.seam_count++] = to;
  }
  if (covered < end) return false;
  const auto seams_end = known.seams.begin() + known.seam_count;
  std::sort(known.seams.begin(), seams_end);
  known.seam_count = static_cast<std::size_t>(std::unique(known.seams.begin(), seams_end) - known.seams.begin());
  for (std::size_t i = 0; i < entry.literal_count; ++i) {
    const auto ahead = static_cast<std::int32_t>(entry.literals[i].end - static_cast<std::uint32_t>(begin));
    if (ahead > 0) known.literals[known.literal_count++] = entry.literals[i].literal;
  }
  return true;
}

}  // namespace penstock::nids
