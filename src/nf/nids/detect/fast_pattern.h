// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Which of a rule's contents selects it: without it in the buffer, the rule cannot hold.

#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "nf/nids/match/pattern_matcher.h"
#include "nf/nids/rules/rule.h"

namespace penstock::nids {

/// A literal is no longer: of a longer content it is the rarest part. That is selective enough, whatever matcher looks
/// for it takes it, and what lies across two pieces of a stream is near their seam.
inline constexpr std::size_t kMostPatternBytes = 32;

struct FastPattern {
  Buffer buffer = Buffer::payload;
  Literal literal;
};

/// The one that the rule names by `fast_pattern`, or else the rarest of its payload's contents, or else of a header's.
/// None: nothing of the rule must be in a buffer (or only a negated content is named).
[[nodiscard]] std::optional<FastPattern> fast_pattern(const Rule& rule);

/// How rare a string of bytes is, guessed: many different bytes, letters counting less (Suricata's PatternStrength).
[[nodiscard]] unsigned pattern_strength(std::span<const std::uint8_t> bytes) noexcept;

}  // namespace penstock::nids
