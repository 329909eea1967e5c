// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "nf/nids/detect/base64.h"

#include <array>
#include <string_view>

namespace penstock::nids {

namespace {

constexpr std::uint8_t kPadding = 64, kForeign = 65;

constexpr std::array<std::uint8_t, 256> kValues = [] {
  constexpr std::string_view kAlphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::array<std::uint8_t, 256> values{};
  values.fill(kForeign);
  for (std::size_t i = 0; i < kAlphabet.size(); ++i) {
    values[static_cast<unsigned char>(kAlphabet[i])] = static_cast<std::uint8_t>(i);
  }
  values['='] = kPadding;
  return values;
}();

}  // namespace

std::size_t decode_base64(std::span<const std::uint8_t> encoded, std::span<std::uint8_t> decoded) noexcept {
  std::size_t read = 0, written = 0;
  for (;;) {
    std::array<std::uint8_t, 4> block{};
    block.fill(kPadding);
    std::size_t taken = 0;
    while (taken < block.size() && read < encoded.size() && kValues[encoded[read]] != kForeign) {
      block[taken++] = kValues[encoded[read++]];
    }
    // A single digit does not make a byte.
    if (taken == 0 || block[0] == kPadding || block[1] == kPadding) return written;
    decoded[written++] = static_cast<std::uint8_t>(block[0] << 2 | block[1] >> 4);
    if (block[2] != kPadding) {
      decoded[written++] = static_cast<std::uint8_t>(block[1] << 4 | block[2] >> 2);
      if (block[3] != kPadding) decoded[written++] = static_cast<std::uint8_t>(block[2] << 6 | block[3]);
    }
    if (taken < block.size()) return written;
  }
}

}  // namespace penstock::nids
