// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "port/record_finder.h"

#include <algorithm>

#include "base/prefetch.h"

namespace penstock::port {

namespace {

// For less, one scout is enough.
constexpr std::size_t kLeastShared = 64 << 10;

/// The first place from which on two records may follow each other; `part_end` if there is none nearby.
template <typename Format>
std::size_t guess(std::span<const std::uint8_t> piece, std::size_t from, std::size_t part_end) noexcept {
  constexpr std::size_t kNearby = 4096;
  for (std::size_t at = from; at < std::min(from + kNearby, part_end); at += Format::kAlignment) {
    if (!Format::is_plausible(piece, at)) continue;
    const std::size_t end = Format::end_of(piece, at);
    if (end != 0 && Format::is_plausible(piece, end)) return at;
  }
  return part_end;
}

}  // namespace

template <typename Format>
RecordFinder<Format>::RecordFinder()
    : places_(kMostPieceBytes / Format::kLeastBytes + 1), found_(kMostPieceBytes / Format::kLeastBytes + 1 + kScouts) {}

template <typename Format>
void RecordFinder<Format>::walk(std::span<const std::uint8_t> piece, std::span<Scout> scouts) noexcept {
  for (bool any = true; any;) {
    any = false;
    for (Scout& scout : scouts) {
      if (scout.at >= scout.part_end) continue;
      const std::size_t end = Format::end_of(piece, scout.at);
      if (end == 0) {
        scout.part_end = 0;  // the scout stays at this record
        continue;
      }
      prefetch(piece.data() + scout.at);
      prefetch(piece.data() + scout.at + Format::kTested);
      *scout.last++ = static_cast<std::uint32_t>(scout.at);
      scout.at = end;
      any = true;
    }
  }
}

template <typename Format>
void RecordFinder<Format>::find(std::span<const std::uint8_t> piece) noexcept {
  piece = piece.first(std::min(piece.size(), kMostPieceBytes));
  const std::size_t scout_count = piece.size() < kLeastShared ? 1 : kScouts;
  const std::size_t part = piece.size() / scout_count / Format::kAlignment * Format::kAlignment;
  std::array<Scout, kScouts> all;
  const std::span<Scout> scouts = std::span(all).first(scout_count);
  std::uint32_t* room = found_.data();
  for (std::size_t i = 0; i < scout_count; ++i) {
    const std::size_t from = i * part;
    const std::size_t to = i + 1 < scout_count ? from + part : piece.size();
    scouts[i] = {i == 0 ? 0 : guess<Format>(piece, from, to), to, room, room};
    room += (to - from) / Format::kLeastBytes + 1;
  }
  walk(piece, scouts);

  std::uint32_t* out = places_.data();
  std::size_t at = 0;  // the end of the records so far
  for (std::size_t i = 0; i < scout_count; ++i) {
    const Scout& scout = scouts[i];
    const std::size_t to = i + 1 < scout_count ? (i + 1) * part : piece.size();
    const std::uint32_t* next = scout.first;  // that the scout has found
    while (at < to) {
      while (next != scout.last && *next < at) ++next;
      if (next != scout.last && *next == at) {
        out = std::copy(next, static_cast<const std::uint32_t*>(scout.last), out);
        at = scout.at;
        if (scout.part_end == 0) break;
        continue;
      }
      const std::size_t end = Format::end_of(piece, at);
      if (end == 0) break;
      *out++ = static_cast<std::uint32_t>(at);
      at = end;
    }
    if (at < to) break;  // at an incomplete record
  }
  count_ = static_cast<std::size_t>(out - places_.data());
  end_ = count_ == 0 ? 0 : at;
}

template class RecordFinder<ClassicRecords>;
template class RecordFinder<PcapngBlocks>;

}  // namespace penstock::port
