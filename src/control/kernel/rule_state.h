// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Which rules the kernel's nftables has, which of them are in use, and so whether the chain should be reloaded. Rule
// sets are known by digests. A rule set is tried once: if it is refused, or rolled back, it stays out of use until the
// kernel has another one, or the operator reloads.

#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>

#include "control/reload.h"

namespace penstock::control {

class RuleState {
 public:
  using Time = std::chrono::system_clock::time_point;

  /// Empty: functions have different ones.
  explicit RuleState(std::optional<std::size_t> in_use) : in_use_(in_use), kernel_(in_use) {}

  /// The kernel has these rules now.
  void read(std::size_t digest, Time now);
  /// Nobody knows which rules the kernel has now.
  void cannot_read(std::string why, Time now);
  /// A function is made from the rules that were read last.
  void handed_out();
  /// `rolled_back_to`: of a rollback, the rules of the functions that are in use again; empty if these differ.
  void reload_ended(const ReloadOutcome& outcome, std::optional<std::size_t> rolled_back_to, Time now);

  [[nodiscard]] bool wants_reload() const noexcept { return kernel_ != in_use_ && kernel_ != tried_; }

  struct NotInUse {
    Time since;
    std::string why;
  };
  /// Empty: the kernel's rules are in use, or are about to be.
  [[nodiscard]] const std::optional<NotInUse>& not_in_use() const noexcept { return not_in_use_; }

 private:
  void settle(std::string why);

  std::optional<std::size_t> in_use_;      // empty: functions have different ones
  std::optional<std::size_t> kernel_;      // empty: unknown, but not those in use
  std::optional<std::size_t> tried_;       // by a reload, since the kernel's and those in use were the same
  std::optional<std::size_t> handed_out_;  // since the last reload
  bool handed_out_several_ = false;        // different ones
  std::optional<Time> differ_since_;
  std::optional<NotInUse> not_in_use_;
};

}  // namespace penstock::control
