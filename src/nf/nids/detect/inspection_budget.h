// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// What the evaluation of rules on one frame may cost, whatever the rules and the frame are: work that is counted, the
// same on each run, and for regular expressions, whose steps nobody can count, time. What is over it is given up.

#pragma once

#include <cstdint>

namespace penstock::nids {

/// Frames of real captures under some thousand public rules take 64 Ki of work and 20 us of expressions at most.
struct InspectionBudget {
  // Bytes that options look at, and kWorkOfStep for each option that is tried.
  std::uint64_t work = std::uint64_t{4} << 20;
  std::uint64_t work_per_byte = 64;  // more for each byte of payloads and streams that the frame has inspected

  // Of the thread's own time: from the first expression of the frame on, and from the first of a rule on a buffer on.
  std::uint64_t expressions_ns = 5'000'000;
  std::uint64_t expressions_ns_per_byte = 32;
  std::uint64_t rule_expressions_ns = 2'000'000;
  std::uint64_t rule_expressions_ns_per_byte = 8;  // of the buffer
};

inline constexpr std::uint64_t kWorkOfStep = 32;

/// Work that is left. What begins may end, so that it may be overdrawn by one search.
class WorkAllowance {
 public:
  void begin(std::uint64_t work) noexcept { left_ = work; }
  void add(std::uint64_t work) noexcept { left_ += work; }
  void take(std::uint64_t work) noexcept { left_ -= work < left_ ? work : left_; }
  [[nodiscard]] bool is_over() const noexcept { return left_ == 0; }

 private:
  std::uint64_t left_ = 0;
};

/// Where time is read.
struct ThreadClock {
  std::uint64_t (*elapsed_ns)() noexcept;  // no slower than the thread's own; cheap
  std::uint64_t (*used_ns)() noexcept;     // of a processor, by this thread: a system call, dearer than most searches
};
[[nodiscard]] const ThreadClock& system_clock() noexcept;

/// Some of a thread's own time: that another one had the processor meanwhile is not charged.
class TimeAllowance {
 public:
  void begin(std::uint64_t allowed_ns) noexcept {
    *this = {};
    allowed_ns_ = allowed_ns;
  }
  void add(std::uint64_t ns) noexcept { allowed_ns_ += ns; }
  /// `elapsed_ns`: the clock's, now. The time counts from the first call on; nearly: what comes before a sixteenth of
  /// it has elapsed is free, so that hardly anyone asks for the thread's time.
  [[nodiscard]] bool is_over(const ThreadClock& clock, std::uint64_t elapsed_ns) noexcept {
    return is_over_ || (elapsed_ns >= next_look_ns_ && look(clock, elapsed_ns));
  }
  [[nodiscard]] bool was_over() const noexcept { return is_over_; }

 private:
  [[nodiscard]] bool look(const ThreadClock& clock, std::uint64_t elapsed_ns) noexcept;

  std::uint64_t allowed_ns_ = 0;
  std::uint64_t next_look_ns_ = 0;  // before it the thread cannot have used up its time; 0: not begun
  std::uint64_t from_ns_ = 0;       // of the thread's time
  bool is_counted_ = false;         // from there on
  bool is_over_ = false;
};

}  // namespace penstock::nids
