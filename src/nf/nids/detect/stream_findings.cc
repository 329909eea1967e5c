// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "nf/nids/detect/stream_findings.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstddef>
#include <memory>

#include "base/prefetch.h"

namespace penstock::nids {

namespace {

// Longer runs of bytes are cut down to what will be looked up again.
constexpr std::uint64_t kMostKept = std::uint64_t{1} << 20, kMostLookedAt = std::uint64_t{1} << 17;

constexpr std::size_t kPageBytes = 4096;

/// How far `at` is ahead of `place`. What is stored of a stream spans far less than 2^31 bytes.
std::int32_t ahead_of(std::uint64_t place, std::uint32_t at) noexcept {
  return static_cast<std::int32_t>(at - static_cast<std::uint32_t>(place));
}

}  // namespace

StreamFindings::Entry* StreamFindings::entry_of(std::uint64_t key) noexcept {
  if (!entries_) {
    if (has_no_memory_) return nullptr;
    // The system zeroes each page on first use: all keys are 0, and no packet waits while the whole table is written.
    const std::size_t bytes = sizeof(Entry) << bits_;
    entries_.reset(static_cast<Entry*>(std::calloc(bytes, 1)));
    has_no_memory_ = !entries_;
    if (has_no_memory_) return nullptr;
    void* page = entries_.get();
    std::size_t whole_pages = bytes;
    if (std::align(kPageBytes, kPageBytes, page, whole_pages) != nullptr) {
      (void)::madvise(page, whole_pages, MADV_HUGEPAGE);  // only a hint: small pages work too
    }
  }
  Entry& entry = place_of(key);
  if (entry.key != key || entry.generation != generation_) {
    entry.key = key;
    entry.generation = generation_;
    entry.floor = 0;
    entry.note_floor = Entry::kNotNoted;
    entry.note_end = entry.joined_from = 0;
    entry.joined_state = {};
    entry.piece_count = entry.literal_count = 0;
  }
  return &entry;
}

void StreamFindings::prefetch(const stack::Flow& flow) const noexcept {
  // Only up to the first few pieces; more are rare, and so are literals.
  constexpr std::size_t kUsual = offsetof(Entry, pieces) + 4 * sizeof(Piece);
  if (!entries_) return;
  for (const stack::Direction direction : {stack::Direction::to_server, stack::Direction::to_client}) {
    penstock::prefetch(&place_of(key_of(flow, direction)), kUsual);
  }
}

void StreamFindings::note(const stack::Flow& flow, stack::Direction direction, const Segment& segment,
                          std::span<const std::uint32_t> literals) noexcept {
  Entry* const entry = entry_of(key_of(flow, direction));
  if (entry == nullptr) return;
  if (entry->note_floor == Entry::kNotNoted) {
    // The bytes that the stream has now may have come in packets that were not noted.
    entry->note_floor = segment.highest;
    return;
  }
  const bool is_known = segment.known && segment.begin >= entry->note_end;
  const bool joined = segment.begin < segment.end && join(*entry, segment, is_known);
  entry->note_end = std::max(entry->note_end, segment.end);
  const std::uint64_t begin = std::max({segment.begin, entry->note_floor, entry->floor});
  if (begin >= segment.end) return;
  if (entry->piece_count == entry->pieces.size()) {
    // Drop the older half; pieces are in order of arrival.
    std::uint64_t floor = entry->floor;
    for (std::size_t i = 0; i < entry->pieces.size() / 2; ++i) floor = std::max(floor, entry->pieces[i].end());
    forget_before(*entry, floor);
  }
  for (const std::uint32_t literal : literals) add_literal(*entry, literal, segment.end);
  const std::uint64_t from = std::max(begin, entry->floor);
  if (from >= segment.end) return;
  entry->pieces[entry->piece_count++] = {from, static_cast<std::uint32_t>(segment.end - from),
                                         is_known ? Kind::noted : Kind::unknown, joined && from == segment.begin};
}

bool StreamFindings::join(Entry& entry, const Segment& segment, bool is_known) noexcept {
  if (segment.state == nullptr || !is_known || segment.begin < std::max(entry.note_floor, entry.floor)) {
    // Also forget seams before it, since it may have changed bytes there.
    entry.joined_from = std::max(entry.note_end, segment.end);
    entry.joined_state = {};
    return false;
  }
  // Compare the state with the bytes that arrived, because it may belong to other packets.
  const bool follows =
      segment.begin == entry.note_end && entry.joined_state.count() > 0 && segment.state->ends_with(entry.joined_state);
  if (!follows) {
    entry.joined_from = segment.begin;
    entry.joined_state = {};
  }
  entry.joined_state.append(segment.payload);
  return follows;
}

void StreamFindings::forget_before(Entry& entry, std::uint64_t floor) noexcept {
  entry.floor = std::max(entry.floor, floor);
  std::uint8_t kept = 0;
  for (std::size_t i = 0; i < entry.piece_count; ++i) {
    Piece piece = entry.pieces[i];
    const std::uint64_t end = piece.end();
    if (end <= entry.floor) continue;
    piece.joined = piece.joined && piece.begin >= entry.floor;
    piece.begin = std::max(piece.begin, entry.floor);
    piece.length = static_cast<std::uint32_t>(end - piece.begin);
    entry.pieces[kept++] = piece;
  }
  entry.piece_count = kept;
  kept = 0;
  for (std::size_t i = 0; i < entry.literal_count; ++i) {
    if (ahead_of(entry.floor, entry.literals[i].end) > 0) entry.literals[kept++] = entry.literals[i];
  }
  entry.literal_count = kept;
}

void StreamFindings::add_literal(Entry& entry, std::uint32_t literal, std::uint64_t end) noexcept {
  for (std::size_t i = 0; i < entry.literal_count; ++i) {
    Entry::Literal& one = entry.literals[i];
    if (one.literal != literal) continue;
    if (ahead_of(end, one.end) < 0) one.end = static_cast<std::uint32_t>(end);
    return;
  }
  if (entry.literal_count == entry.literals.size()) {
    std::int32_t oldest = 0;
    for (const Entry::Literal& one : entry.literals) oldest = std::min(oldest, ahead_of(end, one.end));
    forget_before(entry, end + static_cast<std::uint64_t>(static_cast<std::int64_t>(oldest)));
  }
  if (end <= entry.floor) return;
  entry.literals[entry.literal_count++] = {literal, static_cast<std::uint32_t>(end)};
}

void StreamFindings::look_up(const stack::Flow& flow, stack::Direction direction, std::uint64_t begin,
                             std::uint64_t end, std::uint64_t reach, Known& known) const noexcept {
  known.rest_count = known.literal_count = 0;
  known.seams_known = 0;
  const std::uint64_t key = key_of(flow, direction);
  const Entry* const entry = entries_ ? &place_of(key) : nullptr;
  if (entry == nullptr || entry->key != key || entry->generation != generation_ || entry->piece_count == 0) {
    known.rest[known.rest_count++] = {begin, end};
    return;
  }
  for (std::size_t i = 0; i < entry->literal_count; ++i) {
    const std::int32_t ahead = ahead_of(begin, entry->literals[i].end);
    if (ahead > 0) {
      known.literals[known.literal_count++] = {entry->literals[i].literal, begin + static_cast<std::uint32_t>(ahead)};
    }
  }
  const std::span<const Piece> pieces(entry->pieces.data(), entry->piece_count);
  const Piece& first = pieces.front();
  if (pieces.size() == 1 && first.kind == Kind::inspected && first.begin <= begin && first.end() >= begin &&
      first.end() < end) {  // the usual case: the stream continues
    known.rest[known.rest_count++] = {std::max(begin, first.end() - std::min(first.end(), reach)), end};
    return;
  }

  // Divide the bytes wherever a piece begins or ends: between two cuts, the same pieces apply.
  std::array<std::uint64_t, 2 * Known::kMostRanges + 2> cuts;
  std::size_t cut_count = 0;
  cuts[cut_count++] = begin;
  cuts[cut_count++] = end;
  for (const Piece& piece : pieces) {
    for (const std::uint64_t at : {piece.begin, piece.end()}) {
      if (at > begin && at < end) cuts[cut_count++] = at;
    }
  }
  const auto cuts_end = cuts.begin() + static_cast<std::ptrdiff_t>(cut_count);
  std::sort(cuts.begin(), cuts_end);
  cut_count = static_cast<std::size_t>(std::unique(cuts.begin(), cuts_end) - cuts.begin());

  const auto add = [&](std::uint64_t from, std::uint64_t to) {
    from = std::max(begin, from - std::min(from, reach));
    to = std::min(end, to + reach);
    if (known.rest_count > 0 && known.rest[known.rest_count - 1].end >= from) {
      known.rest[known.rest_count - 1].end = std::max(known.rest[known.rest_count - 1].end, to);
    } else {
      known.rest[known.rest_count++] = {from, to};
    }
  };
  for (std::size_t i = 0; i + 1 < cut_count; ++i) {
    bool is_inspected = false, is_noted = false, is_unknown = false, goes_on = false, is_joined = false;
    for (const Piece& piece : pieces) {
      if (piece.begin > cuts[i] || piece.end() <= cuts[i]) continue;
      is_inspected = is_inspected || piece.kind == Kind::inspected;
      is_noted = is_noted || piece.kind == Kind::noted;
      is_unknown = is_unknown || piece.kind == Kind::unknown;
      goes_on = goes_on || (piece.kind == Kind::inspected && piece.begin < cuts[i]);
      is_joined = is_joined || (piece.joined && piece.begin == cuts[i]);
    }
    if (!is_inspected && (!is_noted || is_unknown)) {
      add(cuts[i], cuts[i + 1]);
    } else if (i > 0 && !goes_on && reach > 0) {
      // A literal across a seam has a byte on either side of it.
      if (is_joined && entry->joined_from + reach <= cuts[i]) {
        ++known.seams_known;
      } else {
        add(cuts[i], cuts[i]);
      }
    }
  }
}

void StreamFindings::searched(const stack::Flow& flow, stack::Direction direction, std::uint64_t begin,
                              std::uint64_t end, std::uint64_t reach, std::span<const Found> found) noexcept {
  Entry* const entry = entry_of(key_of(flow, direction));
  if (entry == nullptr) return;
  for (const Found& one : found) add_literal(*entry, one.literal, one.end);
  Piece& first = entry->pieces.front();
  if (entry->piece_count == 1 && first.kind == Kind::inspected && first.begin <= begin &&
      first.end() >= begin + reach && first.end() <= end && end - first.begin <= kMostKept) {
    first.length = static_cast<std::uint32_t>(end - first.begin);  // the usual case: the stream continues
    return;
  }
  // It replaces the pieces inside it, and is joined with bytes inspected before if no literal can cross the seam.
  std::uint64_t from = begin, to = end;
  std::size_t kept = 0;
  for (std::size_t i = 0; i < entry->piece_count; ++i) {
    Piece piece = entry->pieces[i];
    const std::uint64_t piece_end = piece.end();
    const bool is_before = piece.begin < begin && piece_end >= begin;
    const bool is_after = piece_end > end && piece.begin <= end;
    if (piece.kind == Kind::inspected && is_before && std::min(piece_end, end) - begin >= reach) {
      from = std::min(from, piece.begin);
      if (is_after) to = std::max(to, piece_end);
      continue;
    }
    if (piece.kind == Kind::inspected && is_after && end - std::max(piece.begin, begin) >= reach) {
      to = std::max(to, piece_end);
      continue;
    }
    if (piece.begin >= begin && piece_end <= end) continue;
    if (is_before && is_after) {
      entry->pieces[kept++] = piece;  // a piece of another kind around it: the inspected one takes precedence
      continue;
    }
    if (is_before) piece.length = static_cast<std::uint32_t>(begin - piece.begin);
    if (is_after) {
      piece.joined = piece.joined && piece.begin == end;
      piece.begin = end;
      piece.length = static_cast<std::uint32_t>(piece_end - end);
    }
    entry->pieces[kept++] = piece;
  }
  entry->piece_count = static_cast<std::uint8_t>(kept);
  if (entry->piece_count == entry->pieces.size()) forget_before(*entry, from);
  from = std::max(from, entry->floor);
  if (from >= to || entry->piece_count == entry->pieces.size()) return;
  if (to - from > kMostKept) from = to - kMostLookedAt;
  entry->pieces[entry->piece_count++] = {from, static_cast<std::uint32_t>(to - from), Kind::inspected};
}

}  // namespace penstock::nids
