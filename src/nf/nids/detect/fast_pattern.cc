// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "nf/nids/detect/fast_pattern.h"

#include <algorithm>
#include <bitset>
#include <tuple>

#include "nf/nids/detect/expression_facts.h"
#include "nf/nids/match/rarity.h"

namespace penstock::nids {

namespace {

bool is_letter(std::uint8_t byte) noexcept {
  const auto lower = static_cast<std::uint8_t>(byte | 0x20);
  return lower >= 'a' && lower <= 'z';
}

std::span<const std::uint8_t> named_part(const Content& content) noexcept {
  const std::span<const std::uint8_t> bytes(content.bytes);
  if (!content.chop_length) return bytes;
  const std::size_t offset = std::min<std::size_t>(content.chop_offset.value_or(0), bytes.size());
  return bytes.subspan(offset, std::min<std::size_t>(*content.chop_length, bytes.size() - offset));
}

}  // namespace

namespace {

/// Bytes that every match of an expression on the payload contains.
std::optional<FastPattern> pattern_of_expressions(const Rule& rule, std::size_t most_bytes) {
  std::optional<FastPattern> best;
  unsigned strongest = 0;
  for (const BufferMatches& buffer : rule.buffers) {
    if (buffer.buffer != Buffer::payload) continue;
    for (const BufferMatch& match : buffer.matches) {
      const auto* const pcre = std::get_if<Pcre>(&match);
      if (pcre == nullptr || pcre->negated || pcre->of != Pcre::Of::buffer) continue;
      const std::optional<Literal> literal = facts_of(*pcre).literal;
      if (!literal) continue;
      const std::span<const std::uint8_t> part = rarest_part(literal->bytes, most_bytes);
      if (best && pattern_strength(part) <= strongest) continue;
      strongest = pattern_strength(part);
      best = FastPattern{Buffer::payload, {{part.begin(), part.end()}, literal->nocase}};
    }
  }
  return best;
}

}  // namespace

unsigned pattern_strength(std::span<const std::uint8_t> bytes) noexcept {
  std::bitset<256> seen;
  unsigned strength = 0;
  for (const std::uint8_t byte : bytes) {
    if (seen[byte]) {
      ++strength;
      continue;
    }
    seen[byte] = true;
    const bool common = (byte >= 0x20 && byte < 0x7f) || byte <= 1 || byte == 0xff;
    strength += is_letter(byte) ? 3 : common ? 4 : 6;
  }
  return strength;
}

std::optional<FastPattern> fast_pattern(const Rule& rule, std::size_t most_bytes) {
  std::optional<FastPattern> best;
  // Ranked by: `fast_pattern`, payload, strength, length.
  std::tuple<bool, bool, unsigned, std::size_t> best_rank{};
  for (const BufferMatches& buffer : rule.buffers) {
    if (buffer.buffer == Buffer::base64_data) continue;
    for (const BufferMatch& match : buffer.matches) {
      const auto* const content = std::get_if<Content>(&match);
      if (content == nullptr || content->negated) continue;
      const std::span<const std::uint8_t> bytes = named_part(*content);
      if (bytes.empty()) continue;
      const std::tuple rank{content->fast_pattern || content->fast_pattern_only, buffer.buffer == Buffer::payload,
                            pattern_strength(bytes), bytes.size()};
      if (best && rank <= best_rank) continue;
      best_rank = rank;
      const std::span<const std::uint8_t> part = rarest_part(bytes, most_bytes);
      best = FastPattern{buffer.buffer, {{part.begin(), part.end()}, content->nocase}};
    }
  }
  return best ? best : pattern_of_expressions(rule, most_bytes);
}

}  // namespace penstock::nids
