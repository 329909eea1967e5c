// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The stages that another process would make from their recipes: the inbound one does what the function's own stage
// does, and the outbound one what its steps on the host do. (Chains in tests/gpu compare the own stages with their
// twins; decision_test.cc compares those steps with the outbound twin.)

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <string>
#include <vector>

#include "nf/ipsec/ipsec_for_test.h"
#include "nf/ipsec/recipe_for_test.h"
#include "nf/ipsec/remote_end_for_test.h"
#include "nf/stage_twins_for_test.h"

namespace penstock::ipsec {
namespace {

using namespace ipsec::testing;
using penstock::testing::FromRecipe;
using penstock::testing::OwnLane;
using penstock::testing::RandomFrames;
using penstock::testing::Way;

class InboundFromRecipe : public ::testing::TestWithParam<Way> {};

INSTANTIATE_TEST_SUITE_P(Ways, InboundFromRecipe, ::testing::ValuesIn(penstock::testing::kWays),
                         [](const auto& way) { return way.param.name; });

std::unique_ptr<Ipsec> inbound_function() {
  Settings settings;
  settings.inbound = true;
  return make_ipsec(kStatesForRecipe, kPoliciesForRecipe, settings);
}

TEST_P(InboundFromRecipe, GivesTheSameVerdictsFramesAndFindings) {
  const auto function = inbound_function();
  const auto tenants = inbound_function();
  FromRecipe remote(*tenants, remote_kernel());
  OwnLane own(*function, GetParam());
  OwnLane from_recipe(remote, GetParam());
  const auto recipe = function->stage_recipe(function::Processor::gpu);
  ASSERT_TRUE(recipe);
  RandomFrames choose(1);
  std::size_t opened = 0;
  for (const std::size_t count : {1U, 31U, 32U, 33U, 2000U}) {
    for (const Frame& frame : frames_for(*recipe, count, choose)) {
      ASSERT_TRUE(own.append(frame));
      ASSERT_TRUE(from_recipe.append(frame));
    }
    ASSERT_TRUE(own.start());
    ASSERT_EQ(own.wait(), gpu::Progress::kDone);
    ASSERT_TRUE(from_recipe.start());
    ASSERT_EQ(from_recipe.wait(), gpu::Progress::kDone);
    const ring::SegmentResults& expected = own.lane().results();
    const ring::SegmentResults& results = from_recipe.lane().results();
    const std::uint8_t* expected_frame = expected.frames;
    const std::uint8_t* frame = results.frames;
    for (std::size_t i = 0; i < count; ++i) {
      SCOPED_TRACE("packet " + std::to_string(i));
      InboundFinding finding, expected_finding;
      std::memcpy(&finding, results.findings.at(0) + i * sizeof(finding), sizeof(finding));
      std::memcpy(&expected_finding, expected.findings.at(0) + i * sizeof(finding), sizeof(finding));
      const bool is_left =
          results.verdicts[i].kind == VerdictKind::punt && fate_of(expected.verdicts[i]) == "integrity";  // with ESN
      if (is_left) {
        ASSERT_EQ(finding.sa, kNoSa);
        continue;
      }
      ASSERT_EQ(results.verdicts[i], expected.verdicts[i]);
      ASSERT_EQ(std::memcmp(&finding, &expected_finding, sizeof(finding)), 0);
      if (!results.verdicts[i].alive()) continue;
      const std::uint32_t length = results.last_lengths()[i];
      ASSERT_EQ(length, expected.last_lengths()[i]);
      ASSERT_EQ(Bytes(frame, frame + length), Bytes(expected_frame, expected_frame + length));
      frame += aligned_frame(length);
      expected_frame += aligned_frame(length);
      opened += finding.authentic;
    }
    own.batch().reset(0);
    from_recipe.batch().reset(0);
  }
  EXPECT_GT(opened, 300U);
}

class OutboundFromRecipe : public ::testing::TestWithParam<Way> {};

INSTANTIATE_TEST_SUITE_P(Ways, OutboundFromRecipe, ::testing::ValuesIn(penstock::testing::kWays),
                         [](const auto& way) { return way.param.name; });

/// Lets the worker decide about a batch.
void fill(function::StateStage& worker, Batch& batch, std::byte* decisions, std::size_t bytes_of_each) {
  for (std::size_t first = 0; first < batch.size(); first += function::kBurst) {
    std::vector<PacketView> views;
    std::vector<std::byte*> states;
    for (std::size_t i = first; i < std::min(batch.size(), first + function::kBurst); ++i) {
      views.push_back(batch.view(i));
      states.push_back(decisions + i * bytes_of_each);
    }
    worker.fill(views, states);
  }
}

/// … or somebody who lies.
void decide(function::StateStage& worker, Batch& batch, std::byte* decisions, bool lies, RandomFrames& choose) {
  fill(worker, batch, decisions, sizeof(Decision));
  for (std::size_t i = 0; lies && i < batch.size(); ++i) {
    if (choose.below(2) == 0) continue;
    const Decision lie = decision_of_a_liar(kOutboundSas, choose);
    std::memcpy(decisions + i * sizeof lie, &lie, sizeof lie);
  }
}

TEST_P(OutboundFromRecipe, CarriesOutWhatTheHostDecides) {
  for (const bool lies : {false, true}) {
    const auto function = make_ipsec(kOutboundStates, outbound_policies(), remote_device());
    FromRecipe remote(*function, remote_outbound_kernel());
    OwnLane lane(remote, GetParam());
    const auto recipe = *function->stage_recipe(function::Processor::gpu);
    const SealingSpans tables = *read_outbound_recipe(recipe);
    const auto twin = function->make_cpu_stage();
    const auto worker = function->make_state_stage(*twin);
    twin->begin_batch();
    RandomFrames choose(1);
    std::size_t sealed = 0;
    for (const std::size_t count : {1U, 31U, 32U, 33U, 2000U}) {
      std::vector<Frame> frames = outbound_frames(count, choose);
      for (const Frame& frame : frames) ASSERT_TRUE(lane.append(frame));
      std::byte* const states = lane.lane().states(0, 0);
      decide(*worker, lane.batch(), states, lies, choose);
      ASSERT_TRUE(lane.start());
      ASSERT_EQ(lane.wait(), gpu::Progress::kDone);
      const ring::SegmentResults& results = lane.lane().results();
      const std::uint8_t* frame = results.frames;
      for (std::size_t i = 0; i < count; ++i) {
        SCOPED_TRACE("packet " + std::to_string(i));
        Decision decision;
        std::memcpy(&decision, states + i * sizeof decision, sizeof decision);
        RoomyFrame expected(frames[i].bytes, tables.growth, frames[i].link_type, frames[i].wire_length);
        const std::uint32_t offset = expected.view.packet->offset;
        const OutboundFinding expected_finding = carry_out_on_host(decision, expected.view, tables);
        OutboundFinding finding;
        std::memcpy(&finding, results.findings.at(0) + i * sizeof finding, sizeof finding);
        ASSERT_EQ(results.verdicts[i], expected.view.packet->verdict);
        ASSERT_EQ(finding.sa, expected_finding.sa);
        if (finding.sa != kNoSa) {
          ASSERT_EQ(finding.ip_bytes, expected_finding.ip_bytes);
          ++sealed;
        }
        if (!results.verdicts[i].alive()) continue;
        const std::uint32_t length = results.last_lengths()[i];
        ASSERT_EQ(length, expected.view.length());
        const std::uint8_t* const expected_frame = expected.view.frame - (offset - expected.view.packet->offset);
        ASSERT_EQ(Bytes(frame, frame + length), Bytes(expected_frame, expected_frame + length));
        frame += aligned_frame(length);
      }
      lane.batch().reset(0);
    }
    EXPECT_GT(sealed, 500U);
  }
}

/// Of a process that does not trust the one with the lanes: a decision is carried out once, and not if it has changed.
TEST_P(OutboundFromRecipe, CarriesOutSignedDecisionsOnce) {
  const auto function = make_ipsec(kOutboundStates, outbound_policies(), remote_device());
  function->decide_for_others();
  FromRecipe remote(*function, remote_outbound_kernel());
  OwnLane lane(remote, GetParam());
  SealingOnHost on_host(*read_outbound_recipe(remote.recipe()));
  const auto twin = function->make_cpu_stage();
  const auto worker = function->make_state_stage(*twin);
  twin->begin_batch();
  RandomFrames choose(1);
  std::size_t sealed = 0, changed = 0;
  for (const std::size_t count : {1U, 31U, 32U, 33U, 2000U}) {
    const std::vector<Frame> frames = outbound_frames(count, choose);
    std::vector<std::byte> decided(count * sizeof(SignedDecision));
    std::vector<bool> was_sealed(count);
    for (const bool again : {false, true}) {
      for (const Frame& frame : frames) ASSERT_TRUE(lane.append(frame));
      std::byte* const states = lane.lane().states(0, 0);
      if (!again) {
        fill(*worker, lane.batch(), states, sizeof(SignedDecision));
        for (std::size_t i = 0; i < count; ++i) {
          if (choose.below(4) != 0) continue;
          states[i * sizeof(SignedDecision) + choose.below(sizeof(SignedDecision))] ^=
              static_cast<std::byte>(1U << choose.below(8));
          ++changed;
        }
        std::memcpy(decided.data(), states, decided.size());
      } else {
        std::memcpy(states, decided.data(), decided.size());
      }
      ASSERT_TRUE(lane.start());
      ASSERT_EQ(lane.wait(), gpu::Progress::kDone);
      const ring::SegmentResults& results = lane.lane().results();
      const SealingView view = on_host.view();
      for (std::size_t i = 0; i < count; ++i) {
        SCOPED_TRACE("packet " + std::to_string(i));
        RoomyFrame expected(frames[i].bytes, on_host.spans.growth, frames[i].link_type, frames[i].wire_length);
        const OutboundFinding expected_finding = carry_out_on_host(
            decision_of(decided.data(), static_cast<std::uint32_t>(i), view), expected.view, on_host.spans, view);
        OutboundFinding finding;
        std::memcpy(&finding, results.findings.at(0) + i * sizeof finding, sizeof finding);
        ASSERT_EQ(results.verdicts[i], expected.view.packet->verdict);
        ASSERT_EQ(finding.sa, expected_finding.sa);
        if (again && was_sealed[i]) {
          ASSERT_EQ(results.verdicts[i], Verdict::punt());
        }
        was_sealed[i] = finding.sa != kNoSa;
        sealed += was_sealed[i] ? 1 : 0;
      }
      lane.batch().reset(0);
    }
  }
  EXPECT_GT(sealed, 500U);
  EXPECT_GT(changed, 200U);
}

}  // namespace
}  // namespace penstock::ipsec
