// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Bounds the memory and the time of building RFC tables. Time is counted in steps, so that the same rules always give
// the same result. After the first excess, everything is refused, so that the builder can unwind.

#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

namespace penstock::classify {

class RfcBudget {
 public:
  RfcBudget(std::size_t memory_limit, std::uint64_t step_limit)
      : memory_limit_(memory_limit), steps_left_(step_limit) {}

  /// What follows is part of this phase, for a message: "source × destination".
  void begin(std::string phase) { phase_ = std::move(phase); }

  /// False if no time is left for so many steps.
  [[nodiscard]] bool spend(std::uint64_t steps) {
    if (excess_) return false;
    if (steps > steps_left_) return refuse("takes too long to build");
    steps_left_ -= steps;
    return true;
  }
  /// False if an estimate of the steps to come exceeds those that are left by far.
  [[nodiscard]] bool expect(std::uint64_t estimate) {
    if (excess_) return false;
    return estimate / 2 <= steps_left_ || refuse("takes too long to build");
  }
  /// False if the tables, or the builder's lists, may not take so many bytes in total.
  [[nodiscard]] bool fits(std::size_t bytes) {
    if (excess_) return false;
    return bytes <= memory_limit_ || refuse_memory(bytes);
  }
  [[nodiscard]] bool refuse(std::string what);
  [[nodiscard]] bool refuse_memory(std::size_t bytes);

  /// Also counts the steps that a copy of this budget has spent.
  void charge(const RfcBudget& copy) noexcept { steps_left_ = copy.steps_left_; }

  /// "source × destination needs more than 1.0 GiB"
  [[nodiscard]] const std::optional<std::string>& excess() const noexcept { return excess_; }

 private:
  std::size_t memory_limit_;
  std::uint64_t steps_left_;
  std::string phase_;
  std::optional<std::string> excess_;
};

}  // namespace penstock::classify
