// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "nf/firewall/firewall.h"
#include "nf/firewall/rules_for_test.h"

namespace penstock::firewall {
namespace {

using ::testing::HasSubstr;

/// The cautions of all functions of a chain with firewalls at these hooks, which have the same rules.
std::string cautions_of(const std::string& rules, const std::vector<std::optional<Hook>>& hooks,
                        PortIndex host = kNoPort) {
  std::vector<std::unique_ptr<Firewall>> firewalls;
  std::vector<const function::NetworkFunction*> chain;
  for (const auto& hook : hooks) {
    ReadOptions options;
    options.hook = hook;
    options.host_has_port = host != kNoPort;
    auto made = Firewall::build(
        rules_of(rules, options), classify::Engine::linear,
        {.hook = hook, .host = host, .place = {"chain.yaml", static_cast<std::uint32_t>(chain.size() + 1), 5}});
    EXPECT_TRUE(made) << to_string(made.error());
    chain.push_back(made->get());
    firewalls.push_back(std::move(*made));
  }
  Errors cautions;
  for (const auto& firewall : firewalls) append(cautions, firewall->cautions_in(chain));
  return to_string(cautions);
}

constexpr Hook kPre = Hook::prerouting, kForward = Hook::forward, kPost = Hook::postrouting, kInput = Hook::input,
               kOutput = Hook::output;

const std::string kFilter = "*filter\n:FORWARD DROP [0:0]\nCOMMIT\n";
const std::string kMasquerade =
    "*nat\n:PREROUTING ACCEPT [0:0]\n:POSTROUTING ACCEPT [0:0]\n[1:2] -A POSTROUTING -j MASQUERADE\nCOMMIT\n";
const std::string kForwarding =
    "*nat\n:PREROUTING ACCEPT [0:0]\n:POSTROUTING ACCEPT [0:0]\n-A PREROUTING -j DNAT --to-destination 10.0.0.1\n"
    "-A OUTPUT -j DNAT --to-destination 10.0.0.1\nCOMMIT\n";

TEST(HookCautions, AGatewayWithAllHooksHasNone) {
  EXPECT_EQ(cautions_of(kFilter + kMasquerade, {kPre, kForward, kPost}), "");
  EXPECT_EQ(cautions_of(kFilter, {kForward}), "");
  EXPECT_EQ(cautions_of(kFilter, {std::nullopt, std::nullopt}), "")
      << "without hooks, it is the reader that refuses NAT";
}

/// Chooses where packets leave.
class Chooser final : public function::NetworkFunction {
 public:
  const function::NfTraits& traits() const noexcept override { return traits_; }
  std::unique_ptr<function::CpuStage> make_cpu_stage() override { return nullptr; }
  std::string description() const override { return "chooses"; }

 private:
  const function::NfTraits traits_{.name = "chooses", .summary = "", .chooses_port = true};
};

TEST(HookCautions, BridgesDoNotRoute) {
  ReadOptions options;
  options.bridges = true;
  const auto bridge = *Firewall::build(
      rules_of(R"({"nftables": [{"metainfo": {"json_schema_version": 1}}, {"chain": {"family": "bridge", "table": "t",
        "name": "c", "type": "filter", "hook": "forward", "prio": 0, "policy": "drop"}}]})",
               options),
      classify::Engine::linear, {.bridge = Bridge{{1, 0}}});
  const Chooser router;
  EXPECT_EQ(to_string(bridge->cautions_in(std::vector<const function::NetworkFunction*>{bridge.get()})), "");
  EXPECT_THAT(to_string(bridge->cautions_in(std::vector<const function::NetworkFunction*>{bridge.get(), &router})),
              HasSubstr("frames are bridged, but a function of the chain chooses where packets leave"));
}

TEST(HookCautions, NameHooksThatHaveRulesAndNoFirewall) {
  EXPECT_EQ(
      cautions_of(kFilter + kMasquerade, {kPre, kForward}),
      "chain.yaml:1:5: rules at hook postrouting apply to no packet: no firewall of the chain stands for it: found "
      "'rules', expected another `firewall` with these rules and `hook: postrouting`");
  EXPECT_THAT(cautions_of(kFilter + kForwarding, {kForward, kPost}), HasSubstr("rules at hook prerouting apply to no"));
  EXPECT_THAT(cautions_of(kFilter + kMasquerade, {kPre, kPost}), HasSubstr("rules at hook forward apply to no packet"));
}

TEST(HookCautions, NameHooksWhereRepliesAreTranslatedBack) {
  EXPECT_THAT(
      cautions_of(kFilter + kMasquerade, {kForward, kPost}),
      HasSubstr("replies of translated connections are not translated back: no firewall of the chain stands for "
                "hook prerouting"));
  EXPECT_THAT(cautions_of(kFilter + kForwarding, {kPre, kForward}), HasSubstr("stands for hook postrouting"));
}

TEST(HookCautions, NameHooksOfTheHostOnlyIfItHasAPort) {
  const std::string own = "*filter\n:INPUT DROP [0:0]\n:FORWARD DROP [0:0]\n:OUTPUT ACCEPT [0:0]\nCOMMIT\n";
  EXPECT_EQ(cautions_of(own + kForwarding, {kPre, kForward, kPost}), "");
  EXPECT_EQ(cautions_of(own + kForwarding, {kPre, kOutput, kForward, kInput, kPost}, 2), "");
  EXPECT_EQ(cautions_of(own + kForwarding, {kOutput, kPre, kInput, kForward, kPost}, 2), "")
      << "no packet passes both of two hooks that have changed their places";
  EXPECT_THAT(cautions_of(own, {kForward}, 2), HasSubstr("rules at hook input apply to no packet"));
  EXPECT_THAT(cautions_of(own + kForwarding, {kPre, kForward, kInput, kPost}, 2),
              HasSubstr("rules at hook output apply to no packet"));
  EXPECT_THAT(
      cautions_of(own + kMasquerade, {kPre, kForward, kInput, kPost}, 2),
      HasSubstr("replies of translated connections are not translated back: no firewall of the chain stands for "
                "hook output"));
  EXPECT_THAT(cautions_of(own, {kForward, kInput, kPost, kOutput}, 2), HasSubstr("hook output after hook postrouting"));
}

TEST(HookCautions, NameTwoFirewallsAtOneHook) {
  EXPECT_EQ(cautions_of(kFilter, {kForward, kForward}),
            "chain.yaml:2:5: two firewalls with the same rules at hook forward: found 'rules', expected one for each "
            "hook");
}

TEST(HookCautions, NameHooksInAnotherOrder) {
  EXPECT_EQ(cautions_of(kFilter + kMasquerade, {kForward, kPre, kPost}),
            "chain.yaml:2:5: packets pass hooks in another order than on Linux: found hook prerouting after hook "
            "forward, expected hook prerouting first");
  EXPECT_THAT(cautions_of(kFilter + kMasquerade, {kPost, kForward, kPre}), HasSubstr("hook forward after hook post"));
}

TEST(LogCautions, NameOutputsToWhichNoFirewallWrites) {
  report::EventLog log(::testing::TempDir() + "unused.log", report::EventLog::Start::anew);
  const auto with = [&](const std::string& rules, bool packets, bool blocks, report::EventLog* nat_log) {
    ReadOptions options;
    options.logs = true;
    Firewall::Setup setup{.tracks_in_any_case = blocks, .log = packets ? &log : nullptr, .nat_log = nat_log};
    if (blocks) setup.tracking.port_blocks.emplace();
    auto made = Firewall::build(rules_of(rules, options), classify::Engine::linear, std::move(setup));
    EXPECT_TRUE(made) << to_string(made.error());
    return std::move(*made);
  };
  const std::string logs = "*filter\n:FORWARD DROP [0:0]\n-A FORWARD -j LOG\nCOMMIT\n";
  const auto first = with(kFilter, true, false, &log), second = with(logs, true, true, &log);
  EXPECT_EQ(to_string(first->cautions_in(std::array<const function::NetworkFunction*, 2>{first.get(), second.get()})),
            "");
  const std::string both = to_string(first->cautions_in(std::array<const function::NetworkFunction*, 1>{first.get()}));
  EXPECT_THAT(both, HasSubstr("the output packet_log stays empty: found no rule that logs"));
  EXPECT_THAT(both, HasSubstr("the output nat_log stays empty: found no port_blocks"));
  const auto none = with(kFilter, false, false, nullptr);
  EXPECT_EQ(to_string(none->cautions_in(std::array<const function::NetworkFunction*, 1>{none.get()})), "");
}

TEST(HookCautions, OfNftablesLookAtWhatMatters) {
  const auto chain = [](const char* type, const char* hook, const char* policy) {
    return fmt::format(R"(, {{"chain": {{"family": "ip", "table": "t", "name": "{0}{1}", "handle": 1, "type": "{0}",
                       "hook": "{1}", "prio": -150, "policy": "{2}"}}}})",
                       type, hook, policy);
  };
  const std::string head = R"({"nftables": [{"metainfo": {"json_schema_version": 1}},
                              {"table": {"family": "ip", "name": "t", "handle": 1}})" +
                           chain("filter", "forward", "drop");
  EXPECT_EQ(cautions_of(head + chain("nat", "prerouting", "accept") + chain("filter", "prerouting", "accept") + "]}",
                        {kForward}),
            "")
      << "chains without rules that matter";
  EXPECT_THAT(cautions_of(head + chain("filter", "prerouting", "drop") + "]}", {kForward}),
              HasSubstr("rules at hook prerouting apply to no packet"));
  const std::string redirect =
      R"(, {"rule": {"family": "ip", "table": "t", "chain": "natprerouting", "handle": 2, "expr": [{"redirect": null}]}}]})";
  EXPECT_THAT(cautions_of(head + chain("nat", "prerouting", "accept") + redirect, {kForward, kPre}),
              HasSubstr("stands for hook postrouting"));
}

}  // namespace
}  // namespace penstock::firewall
