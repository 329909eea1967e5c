// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Compares the tables with the model of the kernel that was written from documentation alone
// (selection_model_for_test.h), for random policies, SAs and packets that share few addresses, ports and numbers.

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <vector>

#include "base/testing/rounds.h"
#include "nf/ipsec/esp/packets_for_test.h"
#include "nf/ipsec/selection/model_terms_for_test.h"
#include "nf/ipsec/selection/random_selection_for_test.h"
#include "nf/ipsec/selection/selection.h"

namespace penstock::ipsec {
namespace {

/// The program's name for it.
Reason reason_of(model::Inbound decision, bool in_the_clear) {
  switch (decision) {
    case model::Inbound::accept: return Reason::none;
    case model::Inbound::state_mismatch: return Reason::policy_mismatch;
    case model::Inbound::no_policy: return Reason::no_policy;
    case model::Inbound::policy_block: return Reason::blocked;
    case model::Inbound::template_mismatch: break;
  }
  return in_the_clear ? Reason::not_protected : Reason::policy_mismatch;
}

struct Tally {
  std::size_t accepted = 0, mismatched = 0, blocked = 0, without_policy = 0;           // in
  std::size_t in_the_clear = 0, protected_by_sa = 0, without_sa = 0, without_end = 0;  // out
};

class Comparison {
 public:
  Comparison(std::uint64_t seed, std::size_t states, std::size_t policies)
      : draw_(seed), states_(draw_.states(states)), policies_(draw_.policies(policies)) {
    for (Policy& policy : policies_) policy.priority = draw_.below(3);
    std::ranges::stable_sort(policies_, {}, &Policy::priority);
    // The model's SAs have no direction.
    for (SecurityAssociation& sa : states_) sa.direction = std::nullopt;
    database_ = database_of(states_, policies_);
  }

  void compare(int packets, Tally& tally) {
    const auto out = tables(Direction::out), in = tables(Direction::in), forward = tables(Direction::forward);
    for (int i = 0; i < packets && !::testing::Test::HasFatalFailure(); ++i) {
      const Flow flow = draw_.flow();
      outward(*out, flow, tally);
      inward(*in, model::Direction::in, flow, tally);
      inward(*forward, model::Direction::forward, flow, tally);
    }
  }

 private:
  /// Only the policies of one direction.
  [[nodiscard]] std::unique_ptr<const Selection> tables(Direction direction) const {
    std::vector<Policy> policies;
    std::ranges::copy_if(policies_, std::back_inserter(policies),
                         [&](const Policy& policy) { return policy.direction == direction; });
    SelectionSources sources;
    sources.states = states_;
    sources.policies = policies;
    auto built = Selection::build(sources, direction != Direction::out);
    EXPECT_TRUE(built);
    return std::move(built->value);
  }

  static std::uint32_t policy_of(const Selection& selection, const classify::Key& key) {
    std::uint32_t policy = kNoPolicy;
    selection.find_policies({&key, 1}, &policy);
    return policy;
  }

  void outward(const Selection& selection, const Flow& flow, Tally& tally) const {
    const RoomyFrame frame(flow.frame);
    classify::Key key;
    make_selector_key(frame.view, key);
    const std::uint32_t policy = policy_of(selection, key);
    Selected selected;
    if (policy != kNoPolicy) {
      selected = select_outbound(selection.view(), policy, key, [](std::uint32_t) { return SaStatus::valid; });
    }
    const model::Outbound expected = model::decide_outbound(database_, packet_of(flow));
    switch (expected.action) {
      case model::Outbound::Action::clear:
        ASSERT_EQ(selected.reason, Reason::none);
        ASSERT_EQ(selected.sa, kNoSa);
        ++tally.in_the_clear;
        break;
      case model::Outbound::Action::protect:
        ASSERT_EQ(selected.reason, Reason::none);
        ASSERT_NE(std::ranges::find(expected.states, selected.sa), expected.states.end())
            << "SA " << selected.sa << " is none of those that may protect it, as SA " << expected.states.front();
        ++tally.protected_by_sa;
        break;
      case model::Outbound::Action::blocked: ASSERT_EQ(selected.reason, Reason::blocked); break;
      case model::Outbound::Action::no_state:
        ASSERT_EQ(selected.reason, Reason::no_sa);
        ++tally.without_sa;
        break;
      case model::Outbound::Action::no_endpoint:
        ASSERT_EQ(selected.reason, Reason::unsupported);
        ++tally.without_end;
        break;
    }
  }

  void inward(const Selection& selection, model::Direction direction, const Flow& flow, Tally& tally) {
    const RoomyFrame frame(flow.frame);
    classify::Key key;
    make_selector_key(frame.view, key);
    const std::uint32_t policy = policy_of(selection, key);
    for (int i = 0; i < 5; ++i) {
      const bool in_the_clear = i == 0 || states_.empty();
      const std::uint32_t sa = in_the_clear ? kNoSa : draw_.below(states_.size());
      const auto applied = in_the_clear ? std::vector<std::size_t>{} : std::vector<std::size_t>{sa};
      const model::Inbound expected = model::check_inbound(database_, direction, packet_of(flow), applied);
      ASSERT_EQ(check_inbound(selection.view(), policy, key, sa), reason_of(expected, in_the_clear));
      tally.accepted += expected == model::Inbound::accept && !in_the_clear ? 1 : 0;
      tally.mismatched += expected == model::Inbound::template_mismatch ? 1 : 0;
      tally.blocked += expected == model::Inbound::policy_block ? 1 : 0;
      tally.without_policy += expected == model::Inbound::no_policy ? 1 : 0;
    }
  }

  SelectionDraw draw_;
  std::vector<SecurityAssociation> states_;
  std::vector<Policy> policies_;
  model::Database database_;
};

RC_GTEST_PROP(SelectionAgainstModel, AgreesOnRandomPoliciesSasAndPackets, ()) {
  const auto seed = *rc::gen::arbitrary<std::uint64_t>();
  Tally tally;
  Comparison(seed, seed % 60, seed / 60 % 80).compare(60, tally);
  RC_ASSERT(!::testing::Test::HasFailure());
}

TEST(SelectionAgainstModel, AgreesOnAllThatCanComeOut) {
  Tally tally;
  for (std::uint64_t seed = 0; seed < penstock::testing::rounds(1000) && !HasFailure(); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Comparison(seed, 30, 50).compare(100, tally);
  }
  for (const std::size_t count : {tally.accepted, tally.mismatched, tally.blocked, tally.without_policy,
                                  tally.in_the_clear, tally.protected_by_sa, tally.without_sa, tally.without_end}) {
    EXPECT_GT(count, penstock::testing::rounds(200));
  }
}

}  // namespace
}  // namespace penstock::ipsec
