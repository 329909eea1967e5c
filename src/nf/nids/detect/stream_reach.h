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

/// In bytes. Exact where each option is near the one before it (a content alone, `within`, an expression that takes so
/// many bytes at most); else, and where that is more, kMostStreamReach, or what the contents take one behind the other.
/// 0: a place is counted from where the inspected bytes begin (depth, startswith, byte_test that is not relative …),
/// nothing must be there, or it is a single byte.
[[nodiscard]] std::uint32_t stream_reach(std::span<const BufferMatch> payload) noexcept;

}  // namespace penstock::nids
