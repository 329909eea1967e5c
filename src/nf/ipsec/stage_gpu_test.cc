// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The inbound stage that another process would make from its recipe does what the function's own stage does. (Chains in
// tests/gpu compare the own stage with its twin.)

#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "nf/ipsec/ipsec_for_test.h"
#include "nf/ipsec/recipe_for_test.h"
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

}  // namespace
}  // namespace penstock::ipsec
