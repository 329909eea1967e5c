// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Compares what a worker decides about bursts of packets with a model that decides about one packet after the other,
// for random policies, SAs that end, and packets of few flows and of all kinds.

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "base/testing/rounds.h"
#include "function/burst.h"
#include "nf/ipsec/esp/decision_core.h"
#include "nf/ipsec/esp/packets_for_test.h"
#include "nf/ipsec/ipsec.h"
#include "nf/ipsec/numbers/numbers_for_test.h"
#include "nf/ipsec/numbers/sa_registry.h"
#include "nf/ipsec/selection/random_selection_for_test.h"
#include "packet/parse_core.h"
#include "packet/testing/random_frames.h"

namespace penstock::ipsec {
namespace {

constexpr std::uint64_t kLastNumber = 0xffff'ffff;

class Model {
 public:
  explicit Model(const Ipsec& of) : tables_(of.tables()), growth_(of.traits().growth), ends_(tables_.sas().size()) {
    for (std::size_t sa = 0; sa < ends_.size(); ++sa) ends_[sa].sent = tables_.sas()[sa].sequence.sent;
  }

  void begin_burst() { before_burst_ = ends_; }

  [[nodiscard]] Decision decide(PacketView packet) {
    parse(packet);
    const Settings& settings = tables_.settings();
    const Reason standing = standing_of(packet.layout());
    if (standing == Reason::not_ip && !drops_not_ip(packet.layout(), settings.drops_unselected)) return passes();
    if (standing != Reason::none) return dropped(standing);
    classify::Key key;
    make_selector_key(packet, key);
    std::uint32_t policy = kNoPolicy;
    tables_.selection().find_policies({&key, 1}, &policy);
    if (policy == kNoPolicy) return settings.drops_unselected ? dropped(Reason::no_policy) : passes();
    // If the SA that serves when the burst begins cannot carry the packet, none of those that follow it is tried.
    Decision decision = select(packet, policy, key, before_burst_);
    while (decision.kind == Decision::Kind::protected_by_sa) {
      decision = select(packet, policy, key, ends_);
      if (decision.kind != Decision::Kind::protected_by_sa) break;
      End& end = ends_[decision.sa];
      if (end.packets != tables_.sas()[decision.sa].lifetimes.hard.packets) {
        ++end.packets;
        decision.sequence = ++end.sent;
        break;
      }
      end.dead = true;
    }
    return decision;
  }

 private:
  struct End {
    std::uint64_t sent = 0, packets = 0;
    bool dead = false;
  };
  static Decision passes() { return {.kind = Decision::Kind::passes}; }
  static Decision dropped(Reason reason) {
    return {.reason = static_cast<std::uint16_t>(reason), .kind = Decision::Kind::dropped};
  }

  /// Without the number.
  [[nodiscard]] Decision select(PacketView packet, std::uint32_t policy, const classify::Key& key,
                                const std::vector<End>& ends) const {
    const Settings& settings = tables_.settings();
    // Soft limits are looked at between batches, by the function.
    const auto status = [&](std::uint32_t sa) {
      if (ends[sa].sent == kLastNumber) return SaStatus::exhausted;
      if (ends[sa].dead) return SaStatus::dead;
      return tables_.states()[sa]->soft() == SaState::Limit::none ? SaStatus::valid : SaStatus::dying;
    };
    const Selected selected = select_outbound(tables_.selection().view(), policy, key, status);
    if (selected.reason != Reason::none) return dropped(selected.reason);
    if (selected.sa == kNoSa) return passes();
    const SaView& sa = tables_.selection().sas()[selected.sa];
    const Encapsulation plan = plan_encapsulation(packet, sa, growth_);
    if (plan.reason != Reason::none) return dropped(plan.reason);
    if (exceeds_mtu(packet, sa, plan, settings.link())) return settings.answers ? Decision{} : dropped(Reason::too_big);
    return {.sa = selected.sa, .kind = Decision::Kind::protected_by_sa};
  }

  const Tables& tables_;
  const FrameRoom growth_;
  std::vector<End> ends_;  // by SA
  std::vector<End> before_burst_;
};

std::unique_ptr<Ipsec> draw_ipsec(SelectionDraw& draw) {
  SaRegistry registry;
  TableSources sources;
  sources.settings.device_is_remote = true;
  sources.settings.drops_unselected = draw.chance(2);
  sources.settings.answers = draw.chance(2);
  if (draw.chance(2)) sources.settings.mtu = 80;
  if (draw.chance(2)) sources.settings.too_big = TooBig::icmp;
  sources.numbers = testing::fixed_numbers();
  sources.registry = &registry;
  sources.sas = draw.states(1 + draw.below(300));
  for (SecurityAssociation& sa : sources.sas) {
    // Of both, either may be given as the reason: an SA that has ended has perhaps taken numbers that it does not use.
    if (draw.chance(3)) {
      sa.lifetimes.hard.packets = 1 + draw.below(60);
    } else if (draw.chance(3)) {
      sa.sequence.sent = kLastNumber - draw.below(50);
    }
  }
  sources.policies = draw.policies(1 + draw.below(60));
  auto tables = Tables::build(std::move(sources));
  EXPECT_TRUE(tables) << to_string(tables.error());
  auto function = std::make_unique<Ipsec>(std::move(tables->value));
  EXPECT_TRUE(function->begin_run());
  return function;
}

/// Of few flows, with payloads and ports of their own.
std::vector<std::unique_ptr<RoomyFrame>> draw_packets(SelectionDraw& draw, const std::vector<Flow>& flows,
                                                      const Ipsec& function) {
  penstock::testing::RandomFrames random(draw.below(1000));
  std::vector<std::unique_ptr<RoomyFrame>> frames;
  for (std::size_t count = 1 + draw.below(function::kBurst); frames.size() < count;) {
    penstock::testing::Frame frame = random.frame();
    if (!draw.chance(8)) {
      frame.bytes = flows[draw.below(flows.size())].frame;
      frame.link_type = LinkType::ethernet;
      frame.bytes.resize(frame.bytes.size() + draw.below(8));
      frame.wire_length = static_cast<std::uint32_t>(frame.bytes.size());
    }
    frames.push_back(
        std::make_unique<RoomyFrame>(frame.bytes, function.traits().growth, frame.link_type, frame.wire_length));
    PacketDescriptor& packet = *frames.back()->view.packet;
    packet.layout = {};
    packet.in_port = static_cast<PortIndex>(draw.below(2));
    packet.verdict = Verdict::forward(draw.chance(2) ? kNoPort : static_cast<PortIndex>(draw.below(2)));
  }
  return frames;
}

struct Tally {
  int protected_by_sa = 0, ended = 0;
};

void expect_agreement(std::uint64_t seed, Tally& tally) {
  SelectionDraw draw(seed);
  const auto function = draw_ipsec(draw);
  const auto stage = function->make_cpu_stage();
  const auto state_stage = function->make_state_stage(*stage);
  Model model(*function);
  std::vector<Flow> flows;
  for (std::uint32_t count = 1 + draw.below(200); flows.size() < count;) flows.push_back(draw.flow());
  for (int burst = 0; burst < 12; ++burst) {
    const auto frames = draw_packets(draw, flows, *function);
    std::vector<PacketView> views;
    std::vector<Decision> decisions(frames.size());
    std::vector<std::byte*> states;
    std::vector<Verdict> verdicts;
    for (std::size_t i = 0; i < frames.size(); ++i) {
      views.push_back(frames[i]->view);
      states.push_back(reinterpret_cast<std::byte*>(&decisions[i]));
      verdicts.push_back(views[i].packet->verdict);
    }
    if (draw.chance(2)) stage->begin_batch();
    state_stage->fill(views, states);
    model.begin_burst();
    for (std::size_t i = 0; i < frames.size(); ++i) {
      ASSERT_EQ(views[i].packet->verdict, verdicts[i]);
      const PacketLayout found = views[i].layout();
      const Decision expected = model.decide(views[i]);
      ASSERT_EQ(found, views[i].layout());
      ASSERT_EQ(decisions[i].kind, expected.kind) << "seed " << seed << ", burst " << burst << ", packet " << i;
      ASSERT_EQ(decisions[i].reason, expected.reason) << "seed " << seed << ", burst " << burst << ", packet " << i;
      ASSERT_EQ(decisions[i].sa, expected.sa) << "seed " << seed << ", burst " << burst << ", packet " << i;
      ASSERT_EQ(decisions[i].sequence, expected.sequence) << "seed " << seed << ", burst " << burst << ", packet " << i;
      tally.protected_by_sa += expected.kind == Decision::Kind::protected_by_sa ? 1 : 0;
      tally.ended += expected.reason == static_cast<std::uint16_t>(Reason::lifetime) ||
                             expected.reason == static_cast<std::uint16_t>(Reason::sequence_exhausted)
                         ? 1
                         : 0;
    }
  }
}

TEST(IpsecDecision, OfABurstIsThatOfItsPacketsOneByOne) {
  Tally tally;
  for (std::uint32_t seed = 1; seed <= penstock::testing::rounds(300) && !HasFatalFailure(); ++seed)
    expect_agreement(seed, tally);
  EXPECT_GT(tally.protected_by_sa, 100);
  EXPECT_GT(tally.ended, 0);
}

}  // namespace
}  // namespace penstock::ipsec
