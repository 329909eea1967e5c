// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Bounds the cost of evaluating rules on one frame, whatever the rules and the frame are. Cost is counted in units of
// work, each about a nanosecond at worst. It is never measured as time, so the same packets give the same alerts on
// every run, even on a busy machine. Evaluations over the budget are given up.

#pragma once

#include <cstdint>

namespace penstock::nids {

/// With several thousand public rules, frames of real captures take at most 64 Ki units of work and 64 Ki for
/// expressions.
struct InspectionBudget {
  // Bytes that options test, kWorkOfStep for each option tried, and state stored for flows.
  std::uint64_t work = std::uint64_t{4} << 20;
  std::uint64_t work_per_byte = 64;  // added for each inspected byte of payloads and streams

  // For regular expressions (PcreProgram): per frame, and per rule and buffer.
  std::uint64_t expressions = 5'000'000;
  std::uint64_t expressions_per_byte = 64;
  std::uint64_t rule_expressions = 2'000'000;
  std::uint64_t rule_expressions_per_byte = 16;  // for each byte of the buffer
};

inline constexpr std::uint64_t kWorkOfStep = 32;

/// The remaining work. A search that has begun may finish, so the allowance can be overdrawn by one search.
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
