// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Which bytes select a rule: without them in the buffer, the rule cannot hold.

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

/// The content that the rule names by `fast_pattern`, or else the rarest of its payload's contents, or else of a
/// header's; in rules without a content, bytes of a regular expression on the payload. None: nothing of the rule must
/// be in a buffer, or nothing is known of it.
[[nodiscard]] std::optional<FastPattern> fast_pattern(const Rule& rule);

/// How rare a string of bytes is, guessed: many different bytes, letters counting less (Suricata's PatternStrength).
[[nodiscard]] unsigned pattern_strength(std::span<const std::uint8_t> bytes) noexcept;

}  // namespace penstock::nids
