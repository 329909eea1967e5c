// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Estimates how often a few bytes occur in traffic, in order to choose which part of a literal to search for.

#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "nf/nids/match/pattern_matcher.h"

namespace penstock::nids {

/// A measure: roughly the binary logarithm of the frequency. Case is ignored.
[[nodiscard]] int commonness(std::span<const std::uint8_t> bytes);

/// The rarest part of `length` bytes, among those that begin in the first kilobyte; all bytes if there are no more than
/// `length`.
[[nodiscard]] std::span<const std::uint8_t> rarest_part(std::span<const std::uint8_t> bytes, std::size_t length);

/// The most bytes of a literal that the scan of single packets searches for. If a literal crosses the seam of two
/// segments of a stream, what the scan cannot see lies within one byte less on either side of the seam.
inline constexpr std::size_t kCutLiteralBytes = 8;

/// For each literal, its rarest kCutLiteralBytes bytes.
[[nodiscard]] std::vector<Literal> cut_literals(std::span<const Literal> literals);

}  // namespace penstock::nids
