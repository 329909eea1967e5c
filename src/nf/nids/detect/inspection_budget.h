// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// What the evaluation of rules on one frame may cost, whatever the rules and the frame are. All of it is counted as
// work, about a nanosecond a unit at the worst: never as time, so that the same packets give the same alerts on each
// run, on a machine that is busy too. What is over it is given up.

#pragma once

#include <cstdint>

namespace penstock::nids {

/// Frames of real captures under some thousand public rules take 64 Ki of work and 64 Ki for expressions at most.
struct InspectionBudget {
  // Bytes that options look at, kWorkOfStep for each option that is tried, and what flows are found to keep.
  std::uint64_t work = std::uint64_t{4} << 20;
  std::uint64_t work_per_byte = 64;  // more for each byte of payloads and streams that the frame has inspected

  // Of regular expressions (PcreProgram): of the frame, and of a rule on a buffer.
  std::uint64_t expressions = 5'000'000;
  std::uint64_t expressions_per_byte = 64;
  std::uint64_t rule_expressions = 2'000'000;
  std::uint64_t rule_expressions_per_byte = 16;  // of the buffer
};

inline constexpr std::uint64_t kWorkOfStep = 32;

/// Work that is left. What begins may end, so that it may be overdrawn by one search.
class WorkAllowance {
 public:
  void begin(std::uint64_t work) noexcept { left_ = work; }
  void add(std::uint64_t work) noexcept { left_ += work; }
  void take(std::uint64_t work) noexcept { left_ -= work < left_ ? work : left_; }
  [[nodiscard]] bool is_over() const noexcept { return left_ == 0; }
  [[nodiscard]] std::uint64_t left() const noexcept { return left_; }

 private:
  std::uint64_t left_ = 0;
};

}  // namespace penstock::nids
