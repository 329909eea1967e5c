// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Integers in network byte order. They have alignment 1, so a header struct made of them can lie at any
// address; compilers turn the byte accesses into one load and one byte swap.

#pragma once

#include <cstdint>

#include "base/host_device.h"

namespace penstock {

struct Be16 {
  std::uint8_t bytes[2];

  [[nodiscard]] PENSTOCK_HOST_DEVICE constexpr std::uint16_t value() const noexcept {
    return static_cast<std::uint16_t>(bytes[0] << 8 | bytes[1]);
  }
  PENSTOCK_HOST_DEVICE constexpr void set(std::uint16_t v) noexcept {
    bytes[0] = static_cast<std::uint8_t>(v >> 8);
    bytes[1] = static_cast<std::uint8_t>(v);
  }
};

struct Be32 {
  std::uint8_t bytes[4];

  [[nodiscard]] PENSTOCK_HOST_DEVICE constexpr std::uint32_t value() const noexcept {
    return static_cast<std::uint32_t>(bytes[0]) << 24 | static_cast<std::uint32_t>(bytes[1]) << 16 |
           static_cast<std::uint32_t>(bytes[2]) << 8 | bytes[3];
  }
  PENSTOCK_HOST_DEVICE constexpr void set(std::uint32_t v) noexcept {
    bytes[0] = static_cast<std::uint8_t>(v >> 24);
    bytes[1] = static_cast<std::uint8_t>(v >> 16);
    bytes[2] = static_cast<std::uint8_t>(v >> 8);
    bytes[3] = static_cast<std::uint8_t>(v);
  }
};

struct Be64 {
  Be32 high, low;

  [[nodiscard]] PENSTOCK_HOST_DEVICE constexpr std::uint64_t value() const noexcept {
    return static_cast<std::uint64_t>(high.value()) << 32 | low.value();
  }
  PENSTOCK_HOST_DEVICE constexpr void set(std::uint64_t v) noexcept {
    high.set(static_cast<std::uint32_t>(v >> 32));
    low.set(static_cast<std::uint32_t>(v));
  }
};

}  // namespace penstock
