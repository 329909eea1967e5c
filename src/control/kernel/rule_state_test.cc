// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "control/kernel/rule_state.h"

#include <gtest/gtest.h>

namespace penstock::control {
namespace {

using What = ReloadOutcome::What;
using Outcome = ReloadOutcome::Result;
constexpr std::size_t kFirst = 1, kSecond = 2, kThird = 3;

class KernelRuleState : public ::testing::Test {
 protected:
  static RuleState::Time at(int second) { return RuleState::Time{std::chrono::seconds{second}}; }

  void reload(Outcome outcome, const char* mistake = "") {
    state_.handed_out();
    end(What::reload, outcome, mistake);
  }
  void end(What what, Outcome outcome, const char* mistake = "",
           std::optional<std::size_t> rolled_back_to = std::nullopt) {
    ReloadOutcome ended{what, outcome};
    if (*mistake != '\0') ended.errors.push_back({{}, mistake, "", ""});
    state_.reload_ended(ended, rolled_back_to, at(now_++));
  }
  void read(std::size_t digest) { state_.read(digest, at(now_++)); }

  bool wants_reload() const { return state_.wants_reload(); }
  std::string why() const { return state_.not_in_use() ? state_.not_in_use()->why : "in use"; }
  int since() const {
    return static_cast<int>(state_.not_in_use()->since.time_since_epoch() / std::chrono::seconds{1});
  }

  int now_ = 100;
  RuleState state_{kFirst};
};

TEST_F(KernelRuleState, WantsAReloadForOtherRulesOnly) {
  EXPECT_FALSE(wants_reload());
  read(kFirst);
  EXPECT_FALSE(wants_reload());
  read(kSecond);
  EXPECT_TRUE(wants_reload());
  EXPECT_EQ(why(), "in use") << "it is about to be";
  reload(Outcome::in_use);
  EXPECT_FALSE(wants_reload());
  EXPECT_EQ(why(), "in use");
  read(kSecond);
  EXPECT_FALSE(wants_reload());
}

TEST_F(KernelRuleState, TakesRulesThatChangeNothingForThoseInUse) {
  read(kSecond);
  reload(Outcome::unchanged);
  EXPECT_FALSE(wants_reload());
  EXPECT_EQ(why(), "in use");
}

TEST_F(KernelRuleState, TriesRefusedRulesOnceAndSaysSinceWhen) {
  read(kSecond);
  reload(Outcome::refused, "ct state is not supported");
  EXPECT_FALSE(wants_reload());
  EXPECT_EQ(why(), "ct state is not supported");
  EXPECT_EQ(since(), 100);
  read(kSecond);
  EXPECT_FALSE(wants_reload());
  read(kThird);
  EXPECT_TRUE(wants_reload());
  reload(Outcome::refused, "limit is not supported");
  EXPECT_EQ(why(), "limit is not supported");
  EXPECT_EQ(since(), 100) << "nothing newer was in use since then";
  read(kFirst);
  EXPECT_EQ(why(), "in use") << "the kernel has the rules in use again";
  EXPECT_FALSE(wants_reload());
  read(kSecond);
  EXPECT_TRUE(wants_reload()) << "a rule set that comes back is tried again";
}

TEST_F(KernelRuleState, IsSettledByTheOperatorsReloadToo) {
  read(kSecond);
  end(What::reload, Outcome::refused, "chain.yaml: unknown parameter");  // before any function is made
  EXPECT_EQ(why(), "chain.yaml: unknown parameter");
  EXPECT_FALSE(wants_reload());
  reload(Outcome::in_use);
  EXPECT_EQ(why(), "in use");
}

TEST_F(KernelRuleState, LeavesARollbackAlone) {
  read(kSecond);
  reload(Outcome::in_use);
  end(What::rollback, Outcome::in_use, "", kFirst);
  EXPECT_EQ(why(), "rolled back");
  EXPECT_FALSE(wants_reload());
  end(What::rollback, Outcome::failed, "no former configuration");
  EXPECT_EQ(why(), "rolled back");
  end(What::rollback, Outcome::in_use, "", kSecond);
  EXPECT_EQ(why(), "in use");
  end(What::rollback, Outcome::in_use, "", kFirst);
  read(kThird);
  EXPECT_TRUE(wants_reload()) << "what the kernel does next is followed";
}

TEST_F(KernelRuleState, WantsAnotherReloadIfFunctionsGotDifferentRules) {
  read(kSecond);
  state_.handed_out();
  read(kThird);
  reload(Outcome::in_use);
  EXPECT_TRUE(wants_reload());
  reload(Outcome::in_use);
  EXPECT_FALSE(wants_reload());
  EXPECT_EQ(why(), "in use");
}

TEST_F(KernelRuleState, SaysThatRulesCannotBeRead) {
  state_.cannot_read("nft: is not installed", at(now_++));
  EXPECT_EQ(why(), "nft: is not installed");
  EXPECT_FALSE(wants_reload());
  reload(Outcome::refused, "nft: is not installed");
  EXPECT_EQ(why(), "nft: is not installed");
  EXPECT_EQ(since(), 100);
  read(kFirst);
  EXPECT_EQ(why(), "in use");
  state_.cannot_read("nft: is not installed", at(now_++));
  read(kSecond);
  EXPECT_EQ(why(), "in use") << "it can be read again, and is about to be";
  EXPECT_TRUE(wants_reload());
}

}  // namespace
}  // namespace penstock::control
