// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Follows the rules of a real kernel, which nft changes, in a network namespace of its own. Skipped where a namespace
// or nft is not available.

#include "control/kernel/rule_follower.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>

#include <cstdlib>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>
#include <thread>

#include "base/capabilities.h"
#include "nf/firewall/firewall.h"

namespace penstock::control {
namespace {

using namespace std::chrono_literals;
using firewall::Firewall;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Clock = std::chrono::steady_clock;
using Outcome = ReloadOutcome::Result;

bool sh(const std::string& command) { return std::system(("{ " + command + "; } >/dev/null 2>&1").c_str()) == 0; }

constexpr const char* kTable =
    "table inet gate { chain forward { type filter hook forward priority 0; policy drop; }; }";

/// A chain with a firewall that has the kernel's rules.
class RuleFollowerTest : public ::testing::Test {
 protected:
  /// Runs `test` in a thread in a new network namespace with a rule set.
  void in_namespace(const std::function<void()>& test) {
    bool possible = false;
    std::thread([&] {
      if (::unshare(CLONE_NEWNET) != 0) return;
      possible = sh(fmt::format("nft '{}' && nft add rule inet gate forward tcp dport 22 accept", kTable));
      if (possible) test();
    }).join();
    if (!possible) GTEST_SKIP() << "no network namespace with nft here";
  }

  Result<std::unique_ptr<function::NetworkFunction>> make(const function::NetworkFunction* running) {
    RawParameter rules;
    rules.name = "rules";
    rules.items = {"kernel"};
    const auto parameters = Parameters::read(firewall::firewall_kind().parameters, {rules}, {});
    function::NfContext context;
    context.running = running;
    return firewall::firewall_kind().make(parameters.value(), context);
  }

  void begin() {
    auto made = make(nullptr);
    ASSERT_TRUE(made) << to_string(made.error());
    chain_.functions.push_back({"firewall", std::move(*made)});
    auto opened = RuleFollower::open(chain_);
    ASSERT_TRUE(opened) << to_string(opened.error());
    follower_ = std::move(*opened);
    ASSERT_NE(follower_, nullptr);
  }

  /// As the thread that waits for a run does.
  Outcome reload() {
    ++reloads_;
    const auto begun = Clock::now();
    ReloadOutcome outcome{ReloadOutcome::What::reload, Outcome::refused};
    auto made = make(chain_.functions.front().function.get());
    if (!made) {
      outcome.errors = std::move(made.error());
    } else if ((*made)->changes_from(*chain_.functions.front().function)->empty()) {
      outcome.result = Outcome::unchanged;
    } else {
      outcome.result = Outcome::in_use;
      EXPECT_TRUE((*made)->take_over(*chain_.functions.front().function));
      former_ = std::exchange(chain_.functions.front().function, std::move(*made));
    }
    outcome.at = std::chrono::system_clock::now();
    outcome.elapsed = Clock::now() - begun;
    follower_->reload_ended(outcome);
    return outcome.result;
  }
  bool wants_reload_within(Clock::duration time) const {
    for (const auto until = Clock::now() + time; Clock::now() < until; std::this_thread::sleep_for(1ms)) {
      if (follower_->wants_reload()) return true;
    }
    return false;
  }
  std::vector<std::string> rules() const {
    std::vector<std::string> texts;
    for (const classify::Rule& rule : static_cast<const Firewall&>(*chain_.functions.front().function).rules().rules) {
      if (rule.text.find("policy") == std::string::npos) texts.push_back(rule.text.substr(0, rule.text.find(" #")));
    }
    return texts;
  }
  nlohmann::json report() const {
    nlohmann::json report;
    follower_->report(report);
    return report;
  }

  run::Chain chain_;
  std::unique_ptr<function::NetworkFunction> former_;
  std::unique_ptr<RuleFollower> follower_;  // ends before the functions
  int reloads_ = 0;
};

TEST_F(RuleFollowerTest, FollowsNewRules) {
  in_namespace([&] {
    begin();
    EXPECT_THAT(rules(), ElementsAre("inet gate forward: tcp dport 22 accept"));
    EXPECT_FALSE(wants_reload_within(500ms)) << "the rules that were loaded are the kernel's";
    ASSERT_TRUE(sh("nft add rule inet gate forward udp dport 53 accept"));
    ASSERT_TRUE(wants_reload_within(5s));
    EXPECT_EQ(reload(), Outcome::in_use);
    EXPECT_THAT(rules(),
                ElementsAre("inet gate forward: tcp dport 22 accept", "inet gate forward: udp dport 53 accept"));
    EXPECT_FALSE(wants_reload_within(700ms));
    EXPECT_EQ(report()["in_use"], true);
  });
}

TEST_F(RuleFollowerTest, NoticesWhatHasChangedBeforeItBegan) {
  in_namespace([&] {
    auto made = make(nullptr);
    ASSERT_TRUE(made) << to_string(made.error());
    chain_.functions.push_back({"firewall", std::move(*made)});
    ASSERT_TRUE(sh("nft add rule inet gate forward udp dport 53 accept"));
    follower_ = std::move(RuleFollower::open(chain_).value());
    EXPECT_TRUE(wants_reload_within(5s));
    EXPECT_EQ(reload(), Outcome::in_use);
  });
}

TEST_F(RuleFollowerTest, DoesNotReloadForCountersNorForTablesOfTheHostAlone) {
  in_namespace([&] {
    ASSERT_TRUE(sh("nft add rule inet gate forward udp dport 1 counter packets 7 bytes 7 accept"));
    begin();
    EXPECT_FALSE(wants_reload_within(500ms));
    ASSERT_TRUE(sh("nft reset rules || nft reset counters"));
    ASSERT_TRUE(
        sh("nft 'add table inet host; add chain inet host c { type filter hook input priority 0; }; "
           "add rule inet host c tcp dport 22 drop'"));
    EXPECT_FALSE(wants_reload_within(700ms));
    EXPECT_GE(report()["readings"], 2);
  });
}

TEST_F(RuleFollowerTest, LeavesRefusedRulesOutOfUseUntilTheKernelHasOthers) {
  in_namespace([&] {
    begin();
    ASSERT_TRUE(sh("nft insert rule inet gate forward meta cpu 1 accept"));
    ASSERT_TRUE(wants_reload_within(5s));
    EXPECT_EQ(reload(), Outcome::refused);
    EXPECT_THAT(rules(), ElementsAre("inet gate forward: tcp dport 22 accept"));
    ASSERT_EQ(follower_->cautions().size(), 1U);
    EXPECT_THAT(to_string(follower_->cautions()),
                AllOf(HasSubstr("the kernel has rules that are not in use, since 20"), HasSubstr("meta cpu")));
    EXPECT_EQ(report()["in_use"], false);
    EXPECT_THAT(report()["why"].get<std::string>(), HasSubstr("meta cpu"));
    EXPECT_FALSE(wants_reload_within(700ms)) << "it would be refused again";
    ASSERT_TRUE(sh(fmt::format("nft 'flush ruleset; {}'", kTable)));
    ASSERT_TRUE(wants_reload_within(5s));
    EXPECT_EQ(reload(), Outcome::in_use);
    EXPECT_THAT(rules(), ElementsAre());
    EXPECT_TRUE(follower_->cautions().empty());
    EXPECT_EQ(report()["in_use"], true);
  });
}

TEST_F(RuleFollowerTest, ReloadsOnceForABurst) {
  in_namespace([&] {
    begin();
    EXPECT_FALSE(wants_reload_within(500ms));
    // More messages than the socket holds: some are lost.
    std::string file = ::testing::TempDir() + "burst-XXXXXX";
    ::close(::mkstemp(file.data()));
    {
      std::ofstream burst(file);
      for (int i = 0; i < 20'000; ++i)
        burst << fmt::format("add rule inet gate forward ip saddr 10.0.{}.{} tcp dport 80 accept\n", i / 256, i % 256);
    }
    ASSERT_TRUE(sh("nft -f " + file));
    static_cast<void>(::unlink(file.c_str()));
    ASSERT_TRUE(wants_reload_within(20s));
    EXPECT_EQ(reload(), Outcome::in_use);
    EXPECT_EQ(rules().size(), 20'001U);
    EXPECT_GT(report()["losses"], 0);
    EXPECT_FALSE(wants_reload_within(2s));
    // Many small changes: the rates are bounded, and the last change counts.
    const auto begun = Clock::now();
    std::thread changes([] {
      for (int i = 0; i < 30; ++i) sh(fmt::format("nft insert rule inet gate forward udp dport {} accept", 1 + i));
    });
    const int before = reloads_;
    const int readings = report()["readings"];
    for (bool done = false; !done;) {
      if (wants_reload_within(2s)) {
        reload();
      } else {
        done = rules().size() == 20'031U || Clock::now() - begun > 60s;
      }
    }
    changes.join();
    EXPECT_EQ(rules().size(), 20'031U);
    const double seconds = std::chrono::duration<double>(Clock::now() - begun).count();
    EXPECT_LE(reloads_ - before, 2 * seconds + 1);
    EXPECT_LE(report()["readings"].get<int>() - readings, 5 * seconds + 2 * (reloads_ - before) + 1);
  });
}

TEST_F(RuleFollowerTest, ReadsWhenTheRunHasNoCapabilitiesLeft) {
  in_namespace([&] {
    begin();
    ASSERT_EQ(keep_only({}), 0);  // of this thread
    EXPECT_FALSE(has_capability(Capability::net_admin));
    EXPECT_EQ(reload(), Outcome::unchanged);
    follower_.reset();
    const auto alone = make(chain_.functions.front().function.get());
    ASSERT_FALSE(alone);
    EXPECT_THAT(to_string(alone.error()), HasSubstr("CAP_NET_ADMIN"));
  });
}

TEST_F(RuleFollowerTest, IsNotThereForRulesOfFiles) {
  auto opened = RuleFollower::open(chain_);
  ASSERT_TRUE(opened);
  EXPECT_EQ(*opened, nullptr);
}

}  // namespace
}  // namespace penstock::control
