// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Restores the 64-bit frame numbers of captures (pcap_cnt). A descriptor holds only their lower 32 bits.

#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "packet/packet.h"

namespace penstock::stack {

/// One per worker. Frames must arrive in capture order, except that some of a batch may arrive late, and consecutive
/// frame numbers must differ by less than 2^31.
class FrameNumbers {
 public:
  /// The full number of the frame; 0 if it did not come from a capture.
  [[nodiscard]] std::uint64_t of(const PacketDescriptor& packet) noexcept {
    if (packet.in_port >= last_.size()) last_.resize(std::size_t{packet.in_port} + 1);
    std::uint64_t& last = last_[packet.in_port];
    const auto step = static_cast<std::int32_t>(packet.number - static_cast<std::uint32_t>(last));
    std::uint64_t number = last + static_cast<std::uint64_t>(std::int64_t{step});  // modulo 2^64
    if (step < 0 && number > last) number += std::uint64_t{1} << 32;               // numbers are never negative
    last = std::max(last, number);
    return number;
  }

 private:
  std::vector<std::uint64_t> last_;  // by port
};

}  // namespace penstock::stack
