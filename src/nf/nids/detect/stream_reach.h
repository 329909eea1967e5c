// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// How far back a match may begin that ends in new bytes of a stream. Streams are inspected piece by piece. Without
// looking back, a match across the seam of two pieces would be missed, and a sender knows where pieces end.

#pragma once

#include <cstdint>
#include <span>

#include "nf/nids/rules/buffer_match.h"

namespace penstock::nids {

/// Matches without a bound are found up to this length, which is as much as a stream's chunks hold
/// (TrackerOptions::chunk_bytes).
inline constexpr std::uint32_t kMostStreamReach = 2560;

struct StreamReach {
  /// How many bytes before the new ones may be part of a match. At most the larger of kMostStreamReach and the total
  /// length of the contents. Below this limit it is exact if each option is near the one before it (a single content,
  /// `within`, an expression of bounded length); otherwise it is the limit.
  std::uint32_t bytes = 0;
  /// The rule can only be tested from the stream's first byte on (a negated content with a position, `^` …), or none of
  /// its options has to be found.
  bool from_start = false;
  /// The rule has positions that count from the stream's first byte, and are known anywhere in it: `offset`, `depth`,
  /// byte_test that is not relative ….
  bool has_places = false;
};

[[nodiscard]] StreamReach stream_reach(std::span<const BufferMatch> payload) noexcept;

}  // namespace penstock::nids
