// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The blocks of a pcapng capture (draft-ietf-opsawg-pcapng). A block has 32-bit fields in its section's byte order:
//
//   | type | length | body, padded to 4 bytes | length |

#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>

namespace penstock::port::pcapng {

// Types.
inline constexpr std::uint32_t kSection = 0x0a0d0d0a;  // the same in both byte orders
inline constexpr std::uint32_t kInterface = 1;
inline constexpr std::uint32_t kObsoletePacket = 2;
inline constexpr std::uint32_t kSimplePacket = 3;
inline constexpr std::uint32_t kEnhancedPacket = 6;

inline constexpr std::uint32_t kByteOrderMagic = 0x1a2b3c4d;

// Options of an interface.
inline constexpr std::uint16_t kEndOfOptions = 0;
inline constexpr std::uint16_t kTimeResolution = 9;
inline constexpr std::uint16_t kTimeOffset = 14;

inline constexpr std::size_t kHead = 8;            // of any block
inline constexpr std::size_t kTail = 4;            // the length again
inline constexpr std::size_t kEnhancedBytes = 32;  // of an Enhanced Packet Block without a packet

constexpr std::size_t padded(std::size_t length) noexcept { return (length + 3) / 4 * 4; }

/// Ticks per second for an if_tsresol value: a power of 10 or 2. Empty if it does not fit in 64 bits.
constexpr std::optional<std::uint64_t> ticks_of(std::uint8_t resolution) noexcept {
  const unsigned power = resolution & 0x7fU;
  if ((resolution & 0x80) != 0) return power < 64 ? std::optional(std::uint64_t{1} << power) : std::nullopt;
  if (power > 19) return std::nullopt;
  std::uint64_t ticks = 1;
  for (unsigned i = 0; i < power; ++i) ticks *= 10;
  return ticks;
}

}  // namespace penstock::port::pcapng
