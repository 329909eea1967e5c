// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// An interface of a pcapng capture in this machine's byte order, with its clock as libpcap reads it.

#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "port/record_formats.h"

namespace penstock::port {

/// Converts times to seconds and microseconds.
class PcapngClock {
 public:
  /// `resolution`: an if_tsresol value. Empty if it is invalid, or so fine that libpcap's conversion overflows.
  static std::optional<PcapngClock> make(std::uint8_t resolution, std::int64_t offset_seconds) noexcept;

  void convert(std::uint64_t ticks, RecordHeader& to) noexcept {
    // Most packets are of the same second as the packet before, which saves two divisions.
    if (ticks < second_begin_ || ticks - second_begin_ >= ticks_per_second_) {
      second_begin_ = ticks - ticks % ticks_per_second_;
      second_ = static_cast<std::int32_t>(ticks / ticks_per_second_ + offset_seconds_);
    }
    const std::uint64_t scaled = (ticks - second_begin_) * multiplier_;
    to.seconds = second_;
    // A division by a constant costs less; 1000 is that of nanoseconds.
    to.fraction = static_cast<std::int32_t>(divisor_ == 1      ? scaled
                                            : divisor_ == 1000 ? scaled / 1000
                                                               : scaled / divisor_);
  }

 private:
  PcapngClock() = default;

  std::uint64_t ticks_per_second_ = 0, offset_seconds_ = 0;
  std::uint64_t multiplier_ = 1, divisor_ = 1;  // from ticks to microseconds
  std::uint64_t second_begin_ = 0;              // in ticks
  std::int32_t second_ = 0;
};

struct PcapngInterface {
  std::uint16_t link_type;
  std::uint32_t snap_length;
  PcapngClock clock;

  /// `block`: a whole Interface Description Block. Empty if libpcap would refuse it, or reads it in a way that other
  /// versions may not.
  static std::optional<PcapngInterface> read(std::span<const std::uint8_t> block) noexcept;
};

}  // namespace penstock::port
