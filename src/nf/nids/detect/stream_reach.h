// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// How far back a match may begin that ends in new bytes of a stream. Streams are inspected piece by piece; without a
// look back, what lies over the seam of two pieces is in neither, and a sender knows where pieces end.

#pragma once

#include <cstdint>
#include <span>

#include "nf/nids/rules/buffer_match.h"

namespace penstock::nids {

/// Of a match that nothing bounds, this much is found; as much as a stream's chunks have (TrackerOptions::chunk_bytes).
inline constexpr std::uint32_t kMostStreamReach = 2560;

struct StreamReach {
  /// How many bytes before the new ones may be part of a match. Exact where each option is near the one before it (a
  /// content alone, `within`, an expression that takes so many bytes at most); else, and where that is more,
  /// kMostStreamReach, or what the contents take one behind the other.
  std::uint32_t bytes = 0;
  /// It can only be tried from the stream's first byte on (a negated content with a place, `^` …), or nothing must be
  /// there.
  bool from_start = false;
  /// Places count from the stream's first byte, and are known anywhere in it: `offset`, `depth`, byte_test that is not
  /// relative ….
  bool has_places = false;
};

[[nodiscard]] StreamReach stream_reach(std::span<const BufferMatch> payload) noexcept;

}  // namespace penstock::nids
