// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// How sequence numbers change in a TCP connection whose payload gets longer or shorter on its way
// (nf_conntrack_seqadj): the last change of length in one direction, and the sum of those before it. Like Linux, it
// knows one change within a window; a second one that comes before the first is acknowledged makes earlier bytes that
// are sent again wrong.

#pragma once

#include <array>
#include <cstdint>

#include "conntrack/tcp_segment.h"
#include "packet/packet.h"

namespace penstock::conntrack {

struct SequenceShift {
  std::uint32_t position = 0;           // of the segment that was changed, as its sender numbers it
  std::uint32_t until = 0, beyond = 0;  // what is added up to there, and beyond; modulo 2^32

  /// The segment at `sequence` got longer by `growth`, modulo 2^32. Once only, also if it is sent again.
  void add(std::uint32_t sequence, std::uint32_t growth) noexcept {
    if (growth == 0 || (until != beyond && !before(position, sequence))) return;
    position = sequence;
    until = beyond;
    beyond += growth;
  }
  /// For a number as the sender has it.
  [[nodiscard]] std::uint32_t of(std::uint32_t sequence) const noexcept {
    return after(sequence, position) ? beyond : until;
  }
  /// For a number as the receiver has it.
  [[nodiscard]] std::uint32_t of_shifted(std::uint32_t sequence) const noexcept { return of(sequence - until); }
};

/// By Direction.
using SequenceShifts = std::array<SequenceShift, 2>;

/// Changes the sequence number, the acknowledgment and SACK blocks (RFC 2018) of a TCP segment that goes in this
/// direction, and its checksum by what has changed. The header is complete.
void shift_sequence_numbers(PacketView packet, const SequenceShifts& shifts, Direction direction) noexcept;

}  // namespace penstock::conntrack
