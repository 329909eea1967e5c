// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "control/kernel/rule_state.h"

#include <utility>

namespace penstock::control {

void RuleState::read(std::size_t digest, Time now) {
  // What was wrong with reading is over; what was wrong with the rules is not.
  if (!kernel_) not_in_use_.reset();
  kernel_ = digest;
  if (!differ_since_) differ_since_ = now;
  settle(not_in_use_ ? not_in_use_->why : "");
}

void RuleState::cannot_read(std::string why, Time now) {
  kernel_.reset();
  tried_.reset();
  if (!differ_since_) differ_since_ = now;
  not_in_use_ = {*differ_since_, std::move(why)};
}

void RuleState::handed_out() {
  handed_out_several_ |= handed_out_ && handed_out_ != kernel_;
  handed_out_ = kernel_;
}

void RuleState::reload_ended(const ReloadOutcome& outcome, std::optional<std::size_t> rolled_back_to, Time now) {
  using Result = ReloadOutcome::Result;
  const bool several = std::exchange(handed_out_several_, false);
  const auto handed_out = std::exchange(handed_out_, std::nullopt);
  const bool changed = outcome.result == Result::in_use || outcome.result == Result::unchanged;
  std::string why = outcome.errors.empty() ? "" : to_string(outcome.errors.front());
  if (outcome.what == ReloadOutcome::What::rollback) {
    if (!changed) return;
    in_use_ = rolled_back_to;
    why = "rolled back";
  } else if (changed && several) {
    // The kernel's rules changed while functions were made one after the other: once more.
    in_use_.reset();
    tried_.reset();
    return;
  } else if (changed && handed_out) {
    in_use_ = handed_out;
  }
  if (!kernel_) return;
  tried_ = kernel_;
  if (!differ_since_) differ_since_ = now;
  settle(std::move(why));
}

void RuleState::settle(std::string why) {
  if (kernel_ == in_use_) {
    tried_.reset();
    differ_since_.reset();
    not_in_use_.reset();
  } else if (tried_ == kernel_) {
    not_in_use_ = {*differ_since_, std::move(why)};
  }
}

}  // namespace penstock::control
