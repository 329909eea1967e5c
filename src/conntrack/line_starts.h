// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Where lines begin in one direction of a TCP stream: the sequence numbers after the last two segments that ended with
// a newline. Two, so that the last line is recognised when it is sent again. A command is believed only at such a place
// (nf_conntrack_ftp), since a segment in the middle of a line may begin with anything.

#pragma once

#include <array>
#include <cstdint>

#include "conntrack/tcp_segment.h"

namespace penstock::conntrack {

class LineStarts {
 public:
  /// Of a connection whose earlier segments are not known: its next segment begins a line.
  [[nodiscard]] static LineStarts picked_up() noexcept {
    LineStarts starts;
    starts.picks_up_ = true;
    return starts;
  }

  /// Whether a line begins at this sequence number.
  [[nodiscard]] bool begins_at(std::uint32_t sequence) noexcept {
    for (unsigned i = 0; i < count_; ++i) {
      if (at_[i] == sequence) return true;
    }
    const bool picks_up = picks_up_;
    picks_up_ = false;
    return picks_up;
  }
  /// A segment with a newline at its end ends before this sequence number.
  void add(std::uint32_t sequence) noexcept {
    for (unsigned i = 0; i < count_; ++i) {
      if (at_[i] == sequence) return;
    }
    if (count_ < at_.size()) {
      at_[count_++] = sequence;
      return;
    }
    std::uint32_t& older = before(at_[0], at_[1]) ? at_[0] : at_[1];
    if (after(sequence, older)) older = sequence;
  }

 private:
  std::array<std::uint32_t, 2> at_{};
  std::uint8_t count_ = 0;
  bool picks_up_ = false;
};

}  // namespace penstock::conntrack
