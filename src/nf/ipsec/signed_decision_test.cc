// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Decisions that cross through a process that may change, forge or repeat them: no number is sealed twice.

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <thread>
#include <vector>

#include "nf/ipsec/outbound_recipe.h"
#include "nf/ipsec/remote_end_for_test.h"

namespace penstock::ipsec {
namespace {

using namespace ipsec::testing;

/// An outbound function for lanes of others, and a device that has its tables.
class SignedDecisions : public ::testing::Test {
 protected:
  void SetUp() override {
    ipsec_ = dynamic_cast<Ipsec*>(end_.function.get());
    ASSERT_NE(ipsec_, nullptr);
    ipsec_->decide_for_others();
    stage_ = ipsec_->make_cpu_stage();
    states_ = ipsec_->make_state_stage(*stage_);
    load();
  }
  /// The tables anew, as after a loss.
  void load() {
    recipe_ = *ipsec_->stage_recipe(function::Processor::gpu);
    ASSERT_TRUE(check_outbound_recipe(recipe_));
    device_ = std::make_unique<SealingOnHost>(*read_outbound_recipe(recipe_));
  }
  [[nodiscard]] std::unique_ptr<RoomyFrame> frame() const {
    return std::make_unique<RoomyFrame>(plain(), ipsec_->traits().growth);
  }
  /// Of so many packets.
  [[nodiscard]] std::vector<SignedDecision> decide(std::size_t packets) {
    std::vector<SignedDecision> decisions(packets);
    stage_->begin_batch();
    for (std::size_t first = 0; first < packets; first += function::kBurst) {
      std::vector<std::unique_ptr<RoomyFrame>> frames;
      std::vector<PacketView> views;
      std::vector<std::byte*> of_each;
      for (std::size_t i = first; i < std::min(packets, first + function::kBurst); ++i) {
        views.push_back(frames.emplace_back(frame())->view);
        of_each.push_back(reinterpret_cast<std::byte*>(&decisions[i]));
      }
      states_->fill(views, of_each);
    }
    return decisions;
  }
  /// Whether the device seals a packet so. If not, it leaves the packet as it is to the CPU.
  [[nodiscard]] bool seals(const SignedDecision& given) {
    const auto packet = frame();
    const SealingView view = device_->view();
    const Decision decision = decision_of(reinterpret_cast<const std::byte*>(&given), 0, view);
    const bool sealed = carry_out_on_host(decision, packet->view, device_->spans, view).sa != kNoSa;
    EXPECT_EQ(packet->bytes() == plain(), !sealed);
    EXPECT_EQ(packet->view.packet->verdict, sealed ? Verdict::forward() : Verdict::punt());
    return sealed;
  }

  End end_ = outwards(kOutboundStates, outbound_policies());
  Ipsec* ipsec_ = nullptr;
  std::unique_ptr<function::CpuStage> stage_;
  std::unique_ptr<function::StateStage> states_;
  function::StageRecipe recipe_;
  std::unique_ptr<SealingOnHost> device_;
};

TEST_F(SignedDecisions, AreStatesOfTheStage) {
  EXPECT_EQ(ipsec_->traits().state_bytes, sizeof(SignedDecision));
  EXPECT_EQ(remote_outbound_kernel().needs(recipe_).state_bytes, sizeof(SignedDecision));
  const std::uint64_t used = device_->words.size() * sizeof(unsigned long long);
  EXPECT_GT(used, 0U);
  EXPECT_EQ(remote_outbound_kernel().load_bytes(recipe_),
            device_->spans.sas.size_bytes() + device_->spans.keys.size_bytes() + used);
}

TEST_F(SignedDecisions, AreCarriedOutOnce) {
  for (const SignedDecision& decision : decide(1000)) {
    ASSERT_EQ(decision.decision.kind, Decision::Kind::protected_by_sa);
    ASSERT_TRUE(seals(decision));
    ASSERT_FALSE(seals(decision)) << "another packet with the same number";
  }
}

TEST_F(SignedDecisions, AreCarriedOutInAnyOrder) {
  std::vector<SignedDecision> decisions = decide(5000);
  std::ranges::reverse(decisions);
  for (const SignedDecision& decision : decisions) ASSERT_TRUE(seals(decision));
  for (const SignedDecision& decision : decisions) ASSERT_FALSE(seals(decision));
}

TEST_F(SignedDecisions, MeanNothingIfABitHasChanged) {
  const SignedDecision decision = decide(1).front();
  for (std::size_t bit = 0; bit < sizeof decision * 8; ++bit) {
    std::array<unsigned char, sizeof decision> bytes;
    std::memcpy(bytes.data(), &decision, sizeof decision);
    bytes[bit / 8] = static_cast<unsigned char>(bytes[bit / 8] ^ 1U << bit % 8);
    SignedDecision changed;
    std::memcpy(&changed, bytes.data(), sizeof changed);
    ASSERT_FALSE(seals(changed)) << bit;
  }
  EXPECT_TRUE(seals(decision)) << "the attempts have not used its number";
}

TEST_F(SignedDecisions, CannotBeMadeWithoutTheKey) {
  Decision forged{.sequence = 77, .sa = 0, .kind = Decision::Kind::protected_by_sa};
  EXPECT_FALSE(seals({forged, 0}));
  EXPECT_FALSE(seals({forged, ~std::uint64_t{0}}));
  EXPECT_FALSE(seals({forged, mac_of(forged, {})}));
  EXPECT_FALSE(seals({forged, decide(1).front().mac}));
  forged.kind = Decision::Kind::passes;
  EXPECT_FALSE(seals({forged, 0}));
}

/// Tables that were loaded anew do not know what earlier ones have used.
TEST_F(SignedDecisions, MeanNothingToTablesThatAreLoadedLater) {
  const std::vector<SignedDecision> earlier = decide(2);
  EXPECT_TRUE(seals(earlier[0]));
  load();
  for (const SignedDecision& decision : earlier) EXPECT_FALSE(seals(decision));
  const SignedDecision later = decide(1).front();
  EXPECT_GT(later.decision.sequence, earlier[1].decision.sequence);
  EXPECT_TRUE(seals(later));
}

/// What a device leaves to the CPU comes to the process as any other packet.
TEST_F(SignedDecisions, AreNotThoseOfTheCpu) {
  const SignedDecision decision = decide(1).front();
  const auto packet = frame();
  std::array<PacketView, 1> burst{packet->view};
  stage_->process(burst);
  Be32 sequence{};
  std::memcpy(&sequence, burst[0].frame + 34 + offsetof(EspHeader, sequence), sizeof sequence);
  EXPECT_EQ(sequence.value(), static_cast<std::uint32_t>(decision.decision.sequence) + 1);
}

TEST_F(SignedDecisions, AreCarriedOutOnceByLanesAtOnce) {
  const std::vector<SignedDecision> decisions = decide(20'000);
  std::vector<std::atomic<int>> sealed(decisions.size());
  std::vector<std::thread> lanes;
  for (int lane = 0; lane < 2; ++lane) {
    lanes.emplace_back([&] {
      for (std::size_t i = 0; i < decisions.size(); ++i) sealed[i] += seals(decisions[i]) ? 1 : 0;
    });
  }
  for (std::thread& lane : lanes) lane.join();
  for (const auto& count : sealed) ASSERT_EQ(count.load(), 1);
}

}  // namespace
}  // namespace penstock::ipsec
