// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// How often a few bytes are to be expected in traffic: which part of a literal to look for first.

#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "nf/nids/match/pattern_matcher.h"

namespace penstock::nids {

/// A measure, in about the logarithm to base 2 of the frequency. Case does not matter.
[[nodiscard]] int commonness(std::span<const std::uint8_t> bytes);

/// The part of so many bytes that is the rarest, of those that begin in the first kilobyte; all of it where it has no
/// more.
[[nodiscard]] std::span<const std::uint8_t> rarest_part(std::span<const std::uint8_t> bytes, std::size_t length);

/// The most bytes of a literal that the scan of single packets looks for: what it cannot see of a literal that lies
/// across two segments of a stream is within one byte less on either side of the seam.
inline constexpr std::size_t kCutLiteralBytes = 8;

/// As many literals, each the rarest kCutLiteralBytes bytes of its own.
[[nodiscard]] std::vector<Literal> cut_literals(std::span<const Literal> literals);

}  // namespace penstock::nids
