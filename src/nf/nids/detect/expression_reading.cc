// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "nf/nids/detect/expression_reading.h"

namespace penstock::nids {

ExpressionReader::ExpressionReader() : places_(ContestedText::kMostBytes), choices_(ContestedText::kMostBytes) {}

void ExpressionReader::find_places(const ContestedText& text, const ContestedText::Reading& reading,
                                   std::size_t begin) noexcept {
  place_count_ = 0;
  for (std::size_t at = begin; at < text.size(); ++at) {
    if (text.contested(at) && !reading.laid(at)) places_[place_count_++] = static_cast<std::uint32_t>(at);
  }
}

bool ExpressionReader::tried_enough(Alike alike, std::size_t place, std::size_t from, std::uint8_t last_byte) noexcept {
  constexpr std::uint8_t kSome = 4;
  const bool one = alike == Alike::one;
  const std::uint64_t key = std::uint64_t{place} << 32 | std::uint64_t{from} << 8 | (one ? 0 : last_byte);
  std::uint8_t& tried = tried_alike_[key * 0x9e3779b97f4a7c15 >> (64 - kTriedBits)];  // Fibonacci hashing
  if (tried == (one ? 1 : kSome)) return true;
  ++tried;
  return false;
}

bool ExpressionReader::choose_next(const ContestedText& text, ContestedText::Reading& reading, std::size_t at,
                                   Choice& choice) noexcept {
  const std::uint8_t own = text.bytes()[at];
  if (choice.tried == 0) {
    choice.tried = 1;
    reading.choose(at, own);
    return true;
  }
  for (; choice.tried <= 256;) {
    const auto byte = static_cast<std::uint8_t>(choice.tried++ - 1);
    if (byte == own || !text.may_be(at, byte)) continue;
    reading.choose(at, byte);
    return true;
  }
  reading.choose(at, own);
  return false;
}

}  // namespace penstock::nids
