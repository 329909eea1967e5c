// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Chooses the bytes that select a rule: if they are not in the buffer, the rule cannot match.

#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "nf/nids/match/pattern_matcher.h"
#include "nf/nids/rules/rule.h"

namespace penstock::nids {

/// The usual upper bound for the length of literals; of a longer content, the rarest part is used. This is selective
/// enough, every matcher can take it, and a literal that spans two pieces of a stream lies close to their seam.
inline constexpr std::size_t kMostPatternBytes = 32;

struct FastPattern {
  Buffer buffer = Buffer::payload;
  Literal literal;
};

/// The content marked `fast_pattern`, or else the rarest content of the payload, or else of a header; for rules without
/// a content, bytes that a regular expression on the payload requires. Empty if the rule requires no bytes in a buffer,
/// or none are known.
[[nodiscard]] std::optional<FastPattern> fast_pattern(const Rule& rule, std::size_t most_bytes = kMostPatternBytes);

/// An estimate of how rare a string is: more for many different bytes, less for letters (Suricata's PatternStrength).
[[nodiscard]] unsigned pattern_strength(std::span<const std::uint8_t> bytes) noexcept;

}  // namespace penstock::nids
