// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Brings the headers of capture records into the cache. A record's place is known only once the record before it has
// been read, so a reader would wait for memory once per packet. Here, several scouts walk from record to record at
// once, each in its own part of the bytes, so that their waits overlap. All but the first guess where a record begins.
// A wrong guess costs time and nothing else: what is read here is not used.

#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "base/prefetch.h"

namespace penstock::port {

class RecordPrefetch {
 public:
  /// `bytes` begin with a record of a classic capture in this machine's byte order.
  static void run(std::span<const std::uint8_t> bytes) noexcept {
    if (bytes.size() < kLeastBytes) return;
    const std::uint8_t* const end = bytes.data() + bytes.size();
    const std::size_t part = bytes.size() / kScouts;
    std::array<Scout, kScouts> scouts;
    for (std::size_t i = 0; i < kScouts; ++i) {
      const std::uint8_t* const from = bytes.data() + i * part;
      const std::uint8_t* const to = i + 1 < kScouts ? from + part : end;
      scouts[i] = {i == 0 ? from : guess(from, to, end, word(bytes.data())), to - kHeader};
    }
    for (bool any = true; any;) {
      any = false;
      for (Scout& scout : scouts) {
        if (scout.at >= scout.last) continue;
        const std::uint32_t length = word(scout.at + kLengthAt);
        prefetch(scout.at + kTested);
        scout.at = length > kMostBytes ? scout.last : scout.at + kHeader + length;
        any = true;
      }
    }
    asm volatile("");  // GCC removes calls of a function that does nothing but prefetch
  }

 private:
  static constexpr std::size_t kScouts = 8;
  static constexpr std::size_t kLeastBytes = 64 << 10;
  static constexpr std::size_t kHeader = 16, kLengthAt = 8, kWireLengthAt = 12;
  static constexpr std::size_t kTested = 72;  // programs seldom read beyond: up to the ports behind IPv6 on Ethernet
  static constexpr std::uint32_t kMostBytes = 262144;

  struct Scout {
    const std::uint8_t* at = nullptr;
    const std::uint8_t* last = nullptr;
  };

  static std::uint32_t word(const std::uint8_t* at) noexcept {
    std::uint32_t value = 0;
    std::memcpy(&value, at, sizeof value);
    return value;
  }

  /// Whether a record may begin here: its lengths are usual ones, and its time is close to that of a record nearby.
  static bool is_plausible(const std::uint8_t* at, const std::uint8_t* end, std::uint32_t seconds) noexcept {
    constexpr std::uint32_t kUsual = 65535, kDay = 86400;
    if (end - at < static_cast<std::ptrdiff_t>(kHeader)) return false;
    const std::uint32_t length = word(at + kLengthAt);
    return length <= kUsual && length <= word(at + kWireLengthAt) && word(at) - seconds + kDay <= 2 * kDay;
  }

  /// The first place where two records may follow each other; `to` if there is none nearby.
  static const std::uint8_t* guess(const std::uint8_t* from, const std::uint8_t* to, const std::uint8_t* end,
                                   std::uint32_t seconds) noexcept {
    constexpr std::ptrdiff_t kNearby = 4096;
    for (const std::uint8_t* at = from; at < from + std::min(kNearby, to - from); ++at) {
      if (!is_plausible(at, end, seconds)) continue;
      const std::size_t length = kHeader + word(at + kLengthAt);
      if (static_cast<std::size_t>(end - at) > length && is_plausible(at + length, end, seconds)) return at;
    }
    return to;
  }
};

}  // namespace penstock::port
