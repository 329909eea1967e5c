// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Frames' numbers in their captures (pcap_cnt), whole again: a descriptor has room for their lower 32 bits.

#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "packet/packet.h"

namespace penstock::stack {

/// One worker's. Its frames come in the order of their captures, but that some of a batch may come late, and of those
/// between two of them there are fewer than 2^31.
class FrameNumbers {
 public:
  /// 0: the frame came from no capture.
  [[nodiscard]] std::uint64_t of(const PacketDescriptor& packet) noexcept {
    if (packet.in_port >= last_.size()) last_.resize(std::size_t{packet.in_port} + 1);
    std::uint64_t& last = last_[packet.in_port];
    const auto step = static_cast<std::int32_t>(packet.number - static_cast<std::uint32_t>(last));
    std::uint64_t number = last + static_cast<std::uint64_t>(std::int64_t{step});  // modulo 2^64
    if (step < 0 && number > last) number += std::uint64_t{1} << 32;               // none is before the first
    last = std::max(last, number);
    return number;
  }

 private:
  std::vector<std::uint64_t> last_;  // by port
};

}  // namespace penstock::stack
