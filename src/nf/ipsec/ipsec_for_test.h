// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// An `ipsec` from the texts of `ip xfrm`, whose IVs are the same in every run.

#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "nf/ipsec/ipsec.h"

namespace penstock::ipsec::testing {

inline constexpr std::uint64_t kIvEpoch = 1'800'000'000'000'000'000;

/// `policies`: none where there is no such file.
inline std::unique_ptr<Ipsec> make_ipsec(const std::string& states, const std::optional<std::string>& policies,
                                         Settings settings) {
  settings.iv_epoch = kIvEpoch;
  TableSources sources;
  sources.settings = settings;
  sources.state_file = "state.txt";
  sources.policy_file = "policy.txt";
  auto read = parse_states(states, sources.state_file);
  EXPECT_TRUE(read) << to_string(read.error());
  EXPECT_TRUE(read->unsupported.empty()) << to_string(read->unsupported);
  sources.sas = std::move(read->value);
  if (policies) {
    auto read_too = parse_policies(*policies, sources.policy_file);
    EXPECT_TRUE(read_too) << to_string(read_too.error());
    sources.policies = std::move(read_too->value);
  }
  auto tables = Tables::build(std::move(sources));
  EXPECT_TRUE(tables) << to_string(tables.error());
  return std::make_unique<Ipsec>(std::move(tables->value));
}

}  // namespace penstock::ipsec::testing
