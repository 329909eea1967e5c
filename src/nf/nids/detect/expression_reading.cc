// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "nf/nids/detect/expression_reading.h"

namespace penstock::nids {

ExpressionReader::ExpressionReader() : places_(ContestedText::kMostBytes), choices_(ContestedText::kMostBytes) {}

void ExpressionReader::find_places(const ContestedText& text, const ContestedText::Reading& reading,
                                   std::size_t begin) noexcept {
  place_count_ = 0;
  tried_anew_.reset();
  for (std::size_t at = begin; at < text.size(); ++at) {
    if (text.contested(at) && !reading.laid(at)) places_[place_count_++] = static_cast<std::uint32_t>(at);
  }
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
