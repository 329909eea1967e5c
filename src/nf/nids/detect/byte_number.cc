// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "nf/nids/detect/byte_number.h"

#include <bit>

namespace penstock::nids {

namespace {

constexpr std::size_t kMostBinaryBytes = 8;
constexpr std::size_t kMostTextBytes = 23;  // 64 bits in octal with a leading 0

constexpr unsigned base_of(NumberText text) noexcept {
  switch (text) {
    case NumberText::hexadecimal: return 16;
    case NumberText::octal: return 8;
    case NumberText::automatic:
    case NumberText::none:
    case NumberText::decimal: break;
  }
  return 10;
}

constexpr unsigned digit_of(std::uint8_t byte) noexcept {
  if (byte >= '0' && byte <= '9') return byte - '0';
  const unsigned lower = byte | 0x20U;
  return lower >= 'a' && lower <= 'z' ? lower - 'a' + 10 : 0xff;
}

constexpr bool is_space(std::uint8_t byte) noexcept { return byte == ' ' || (byte >= '\t' && byte <= '\r'); }

}  // namespace

std::optional<ByteNumber> read_binary_number(std::span<const std::uint8_t> bytes, ByteOrder order) noexcept {
  if (bytes.size() > kMostBinaryBytes) return std::nullopt;
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    value = value << 8 | bytes[order == ByteOrder::big ? i : bytes.size() - 1 - i];
  }
  return ByteNumber{value, static_cast<std::uint32_t>(bytes.size())};
}

std::optional<ByteNumber> read_text_number(std::span<const std::uint8_t> bytes, NumberText text) noexcept {
  if (bytes.size() > kMostTextBytes) return std::nullopt;
  unsigned base = base_of(text);
  std::size_t i = 0;
  while (i < bytes.size() && is_space(bytes[i])) ++i;
  bool negative = false;
  if (i < bytes.size() && (bytes[i] == '-' || bytes[i] == '+')) negative = bytes[i++] == '-';
  // As in strtoull with base 0, the prefix determines the base.
  if (text == NumberText::automatic && i + 1 < bytes.size() && bytes[i] == '0') {
    base = (bytes[i + 1] | 0x20) == 'x' ? 16 : 8;
  }
  if (base == 16 && i + 2 < bytes.size() && bytes[i] == '0' && (bytes[i + 1] | 0x20) == 'x' &&
      digit_of(bytes[i + 2]) < base) {
    i += 2;
  }
  const std::size_t digits = i;
  std::uint64_t value = 0;
  for (; i < bytes.size() && digit_of(bytes[i]) < base; ++i) {
    std::uint64_t times = 0;
    if (__builtin_mul_overflow(value, std::uint64_t{base}, &times) ||
        __builtin_add_overflow(times, std::uint64_t{digit_of(bytes[i])}, &value)) {
      return std::nullopt;
    }
  }
  if (i == digits) return std::nullopt;
  return ByteNumber{negative ? 0 - value : value, static_cast<std::uint32_t>(i)};
}

std::uint64_t apply_bitmask(std::uint64_t value, std::uint32_t bitmask) noexcept {
  return bitmask == 0 ? value : (value & bitmask) >> std::countr_zero(bitmask);
}

}  // namespace penstock::nids
