// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The state of the literals' automaton at the end of some bytes of a stream. A device searches for literals of at most
// kCutLiteralBytes bytes, so the last kCutLiteralBytes - 1 bytes of the stream are the complete state. It fits into one
// word, which is sent to the device with the next packet:
//
//   byte   0 1 2 3 4 5 6     7
//          the last bytes    how many they are; 0: the automaton starts at its root

#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <span>

#include "base/host_device.h"
#include "nf/nids/match/rarity.h"

namespace penstock::nids {

class FlowState {
 public:
  static constexpr std::uint32_t kMost = 7;
  static_assert(kMost + 1 == kCutLiteralBytes && std::endian::native == std::endian::little);

  [[nodiscard]] PENSTOCK_HOST_DEVICE std::uint32_t count() const noexcept {
    return static_cast<std::uint32_t>(word_ >> 56);
  }
  /// Whether it can be one; always, unless it comes from elsewhere.
  [[nodiscard]] PENSTOCK_HOST_DEVICE bool is_sound() const noexcept { return count() <= kMost; }
  /// The first byte is the lowest one; zeros above the last.
  [[nodiscard]] PENSTOCK_HOST_DEVICE std::uint64_t bytes() const noexcept { return word_ << 8 >> 8; }

  /// Advances the state by these bytes of the stream.
  void append(std::span<const std::uint8_t> more) noexcept {
    const auto taken = static_cast<std::uint32_t>(std::min<std::size_t>(more.size(), kMost));
    const std::uint32_t kept = std::min(count(), kMost - taken);
    std::uint64_t tail = 0;
    if (taken > 0) std::memcpy(&tail, more.data() + more.size() - taken, taken);
    const std::uint64_t head = kept > 0 ? bytes() >> 8 * (count() - kept) : 0;
    word_ = head | tail << 8 * kept | std::uint64_t{kept + taken} << 56;
  }
  /// Whether these bytes end with those of `other`.
  [[nodiscard]] bool ends_with(const FlowState& other) const noexcept {
    return other.count() <= count() && bytes() >> 8 * (count() - other.count()) == other.bytes();
  }
  friend bool operator==(const FlowState&, const FlowState&) = default;

 private:
  std::uint64_t word_ = 0;
};
static_assert(sizeof(FlowState) == 8);

}  // namespace penstock::nids
