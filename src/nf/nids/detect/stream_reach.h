// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// How far back a match may begin that ends in new bytes of a stream. Streams are inspected piece by piece; without a
// look back, what lies over the seam of two pieces is in neither, and pieces end where an evader can tell.

#pragma once

#include <cstdint>
#include <span>

#include "nf/nids/rules/buffer_match.h"

namespace penstock::nids {

/// Whatever rules ask for: a stream keeps as many bytes in each direction.
inline constexpr std::uint32_t kMostStreamReach = 1024;
/// What lies between a rule's contents, where nothing bounds it.
inline constexpr std::uint32_t kUnboundedReach = 256;

/// In bytes, at most kMostStreamReach. Exact where each option is near the one before it (a content alone, `within`,
/// numbers of the rule); else the contents' lengths and kUnboundedReach. 0: a place is counted from where the inspected
/// bytes begin (offset, depth, startswith, isdataat or byte_test that are not relative …), nothing must be there, or it
/// is a single byte.
[[nodiscard]] std::uint32_t stream_reach(std::span<const BufferMatch> payload) noexcept;

}  // namespace penstock::nids
