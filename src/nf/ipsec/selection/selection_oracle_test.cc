// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Compares the tables with a linear search through all policies and all SAs of the user's files.

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <tuple>
#include <vector>

#include "base/testing/rounds.h"
#include "nf/ipsec/esp/packets_for_test.h"
#include "nf/ipsec/sa/addresses.h"
#include "nf/ipsec/selection/random_selection_for_test.h"
#include "nf/ipsec/selection/selection.h"

namespace penstock::ipsec {
namespace {

bool holds(const IpPrefix& prefix, const IpAddress& address) {
  if (prefix.index() != address.index()) return false;
  if (const auto* const v4 = std::get_if<Ipv4Prefix>(&prefix)) return contains(*v4, std::get<Ipv4Address>(address));
  return contains(std::get<Ipv6Prefix>(prefix), std::get<Ipv6Address>(address));
}

bool selects(const Selector& selector, const Flow& flow) {
  return holds(selector.source, flow.source) && holds(selector.destination, flow.destination) &&
         (selector.protocol == 0 || selector.protocol == flow.protocol) &&
         (!selector.source_port || flow.first.value_or(0) == selector.source_port) &&
         (!selector.destination_port || flow.second.value_or(0) == selector.destination_port);
}

bool is_zero(const IpAddress& address) { return table_address(address) == Ipv6Address{}; }

struct Oracle {
  const std::vector<SecurityAssociation>& states;
  const std::vector<Policy>& policies;
  const std::vector<SaStatus>& status;

  const Policy* find(Direction direction, const Flow& flow) const {
    for (const Policy& policy : policies) {
      if (policy.direction == direction && selects(policy.selector, flow)) return &policy;
    }
    return nullptr;
  }
  bool fits(const SecurityAssociation& sa, const Template& wanted, const Flow& flow, bool outwards) const {
    if (sa.mode != wanted.mode || (wanted.spi != 0 && wanted.spi != sa.spi)) return false;
    if (sa.reqid != wanted.reqid && (outwards || wanted.reqid != 0)) return false;
    if (sa.mode == Mode::tunnel) {
      return (!outwards || sa.destination == wanted.destination) &&
             (is_zero(wanted.source) || sa.source == wanted.source);
    }
    return !outwards || (sa.destination == flow.destination && (is_zero(sa.source) || sa.source == flow.source));
  }
  Selected outwards(const Policy& policy, const Flow& flow) const {
    if (policy.action == PolicyAction::block) return {Reason::blocked, kNoSa};
    if (policy.templates.empty()) return {};
    const Template& wanted = policy.templates.front();
    if (wanted.mode == Mode::tunnel && is_zero(wanted.destination)) return {Reason::unsupported, kNoSa};
    const auto newer = [&](std::uint32_t a, std::uint32_t b) {
      const auto rank = [&](std::uint32_t i) { return std::tuple(-states[i].lifetimes.added.value_or(-1), i); };
      return rank(a) < rank(b);
    };
    const auto better = [&](std::uint32_t a, std::uint32_t b) {
      const auto rank = [&](std::uint32_t i) {
        return std::tuple(states[i].mode == Mode::transport && is_zero(states[i].source), status[i] == SaStatus::dying);
      };
      return rank(a) != rank(b) ? rank(a) < rank(b) : newer(a, b);
    };
    std::uint32_t best = kNoSa;
    std::uint32_t last = kNoSa;  // of those that have ended, the last to be tried, which determines the reason
    for (std::uint32_t i = 0; i < states.size(); ++i) {
      const SecurityAssociation& sa = states[i];
      if (sa.direction == Direction::in || !fits(sa, wanted, flow, true)) continue;
      if (sa.selector && !selects(*sa.selector, flow)) continue;
      if (status[i] == SaStatus::dead || status[i] == SaStatus::exhausted) {
        if (last == kNoSa || newer(last, i)) last = i;
      } else if (best == kNoSa || better(i, best)) {
        best = i;
      }
    }
    if (best != kNoSa) return {Reason::none, best};
    if (wanted.optional) return {};
    if (last == kNoSa) return {Reason::no_sa, kNoSa};
    return {status[last] == SaStatus::exhausted ? Reason::sequence_exhausted : Reason::lifetime, kNoSa};
  }
  Reason inwards(const Flow& flow, std::uint32_t sa) const {
    const bool tunnel = sa != kNoSa && states[sa].mode == Mode::tunnel;
    if (sa != kNoSa && states[sa].selector && !selects(*states[sa].selector, flow)) return Reason::policy_mismatch;
    const Policy* policy = find(Direction::forward, flow);
    if (policy == nullptr) policy = find(Direction::in, flow);
    if (policy == nullptr) return tunnel ? Reason::no_policy : Reason::none;
    if (policy->action == PolicyAction::block) return Reason::blocked;
    if (policy->templates.empty()) return tunnel ? Reason::policy_mismatch : Reason::none;
    const Template& wanted = policy->templates.front();
    if (wanted.optional && !tunnel) return Reason::none;
    if (sa == kNoSa) return Reason::not_protected;
    return fits(states[sa], wanted, flow, false) ? Reason::none : Reason::policy_mismatch;
  }
};

struct Tally {
  int found = 0, none = 0, over = 0;  // outbound
  int accepted = 0, refused = 0;      // inbound, on an SA
};

/// Checks a packet outbound, inbound in the clear, and inbound on a few of the SAs.
void expect_agreement(const Selection& out, const Selection& in, const Oracle& oracle, SelectionDraw& draw,
                      Tally& tally) {
  const Flow flow = draw.flow();
  RoomyFrame frame(flow.frame);
  classify::Key key;
  make_selector_key(frame.view, key);

  std::uint32_t policy = kNoPolicy;
  out.find_policies({&key, 1}, &policy);
  const Policy* const expected = oracle.find(Direction::out, flow);
  ASSERT_EQ(policy == kNoPolicy, expected == nullptr);
  if (expected != nullptr) {
    ASSERT_EQ(out.line(policy), expected->line);
    const Selected selected =
        select_outbound(out.view(), policy, key, [&](std::uint32_t i) { return oracle.status[i]; });
    const Selected by_hand = oracle.outwards(*expected, flow);
    ASSERT_EQ(selected.reason, by_hand.reason);
    ASSERT_EQ(selected.sa, by_hand.sa);
    tally.found += selected.sa != kNoSa ? 1 : 0;
    tally.none += selected.reason == Reason::no_sa ? 1 : 0;
    tally.over += selected.reason == Reason::lifetime ? 1 : 0;
  }
  in.find_policies({&key, 1}, &policy);
  ASSERT_EQ(check_inbound(in.view(), policy, key, kNoSa), oracle.inwards(flow, kNoSa));
  for (int i = 0; i < 4; ++i) {
    const std::uint32_t sa = draw.below(oracle.states.size());
    const Reason reason = check_inbound(in.view(), policy, key, sa);
    ASSERT_EQ(reason, oracle.inwards(flow, sa));
    ++(reason == Reason::none ? tally.accepted : tally.refused);
  }
}

Tally expect_agreement(std::uint64_t seed, std::size_t state_count, std::size_t policy_count, int packets) {
  Tally tally;
  SelectionDraw draw(seed);
  const auto states = draw.states(state_count);
  auto policies = draw.policies(policy_count);
  for (std::size_t i = 0; i < policies.size(); ++i) policies[i].line = static_cast<std::uint32_t>(i + 1);
  std::vector<SaStatus> status(states.size());
  for (SaStatus& s : status) s = static_cast<SaStatus>(draw.below(4));
  SelectionSources sources;
  sources.states = states;
  sources.policies = policies;
  const auto out = Selection::build(sources, false);
  const auto in = Selection::build(sources, true);
  EXPECT_TRUE(out && in);
  if (!out || !in) return tally;
  const Oracle oracle{states, policies, status};
  for (int i = 0; i < packets && !::testing::Test::HasFatalFailure(); ++i) {
    expect_agreement(*out->value, *in->value, oracle, draw, tally);
  }
  return tally;
}

RC_GTEST_PROP(SelectionOracle, AgreesOnRandomPoliciesAndPackets, ()) {
  const auto seed = *rc::gen::arbitrary<std::uint64_t>();
  static_cast<void>(expect_agreement(seed, 1 + seed % 60, seed % 80, 100));
  RC_ASSERT(!::testing::Test::HasFailure());
}

TEST(SelectionOracle, AgreesOnTenThousandPoliciesAndSas) {
  static_cast<void>(expect_agreement(7, 10'000, 10'000, 300));
}

TEST(SelectionOracle, SeesAllThatCanComeOut) {
  Tally all;
  for (std::uint64_t seed = 0; seed < penstock::testing::rounds(1000); ++seed) {
    const Tally tally = expect_agreement(seed, 40, 60, 50);
    all.found += tally.found;
    all.none += tally.none;
    all.over += tally.over;
    all.accepted += tally.accepted;
    all.refused += tally.refused;
  }
  for (const int count : {all.found, all.none, all.over, all.accepted, all.refused})
    EXPECT_GT(static_cast<std::uint32_t>(count), penstock::testing::rounds(200));
}

TEST(SelectionOracle, FindsEachOfTenThousandSasAndNoOther) {
  SelectionDraw draw(3);
  const auto states = draw.states(10'000);
  const auto table = InboundTable::build(states, "states");
  ASSERT_TRUE(table);
  std::size_t longest = 0;
  for (std::uint32_t i = 0; i < 20'000; i += penstock::testing::stride()) {
    const IpAddress destination = i < 10'000 ? states[i].destination : draw.address(draw.chance(2));
    const std::uint32_t spi = i < 10'000 ? states[i].spi : 256 + draw.below(12'000);
    std::uint32_t expected = kNoSa;
    bool ours = false;
    for (std::uint32_t s = 0; s < states.size(); ++s) {
      if (states[s].direction == Direction::out || states[s].destination != destination) continue;
      ours = true;
      if (states[s].spi == spi) expected = s;
    }
    const Ipv6Address address = table_address(destination);
    const Found found = find_sa(table->view(), family_of(destination), address, spi);
    ASSERT_EQ(found.kind, expected != kNoSa ? Found::Kind::sa : ours ? Found::Kind::no_sa : Found::Kind::not_ours);
    ASSERT_EQ(found.sa, expected);
    const std::uint32_t home = slot_hash(family_of(destination), address, spi) & table->view().mask;
    longest = std::max<std::size_t>(
        longest, (find_slot(table->view(), family_of(destination), address, spi) - home) & table->view().mask);
  }
  EXPECT_LT(longest, 32U) << "slots looked at";
}

}  // namespace
}  // namespace penstock::ipsec
