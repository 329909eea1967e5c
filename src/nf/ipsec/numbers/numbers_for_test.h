// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Numbers that are the same in every run, for tests that compare packets.

#pragma once

#include <memory>
#include <string>

#include "nf/ipsec/numbers/number_source.h"
#include "nf/ipsec/numbers/sa_registry.h"

namespace penstock::ipsec::testing {

inline constexpr std::uint64_t kIvBase = 1'800'000'000'000'000'000;

/// Reserves all numbers; the packet after the file's last one has the IV kIvBase + 1.
class FixedNumbers final : public NumberSource {
 public:
  const std::string& folder() const noexcept override { return folder_; }
  Errors check(SaStates /*states*/) const override { return {}; }
  std::string fault() const override { return ""; }
  Result<void> begin(SaStates states) override {
    for (const auto& state : states) {
      if (state->numbers.reserved() != 0) continue;  // another function has begun already
      state->begin_run(state->sent(), kIvBase - state->sent(), kMostOfRun);
      state->reserve_to(state->numbers.most());
    }
    return {};
  }
  void end(SaStates /*states*/) noexcept override {}

 private:
  const std::string folder_;
};

inline std::shared_ptr<NumberSource> fixed_numbers() { return std::make_shared<FixedNumbers>(); }

}  // namespace penstock::ipsec::testing
