// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Compares the GPU stage of a firewall that translates, on a lane, with the same core on the host: verdicts, counters
// and every byte of the frames, by random states.

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "classify/linear_core.h"
#include "nf/firewall/firewall.h"
#include "nf/firewall/recipe.h"
#include "nf/firewall/rules_for_test.h"
#include "nf/firewall/translating_core.h"
#include "nf/stage_twins_for_test.h"

namespace penstock::firewall {
namespace {

using testing::Bytes;
using testing::OwnLane;
using testing::RandomFrames;
using testing::Way;

constexpr std::array kStates{classify::ConnectionState::invalid, classify::ConnectionState::begins,
                             classify::ConnectionState::established, classify::ConnectionState::related};

TranslatingState random_state(RandomFrames& draw) {
  const auto word = [&] { return std::uint64_t{draw.below(1U << 31)} << 32 | draw.below(1U << 31); };
  TranslatingState state;
  state.address = {word(), word()};
  state.port = static_cast<std::uint16_t>(draw.below(1U << 16));
  state.sides = static_cast<std::uint8_t>(draw.below(3));
  state.connection = number_of(classify::Connection{kStates[draw.below(kStates.size())]});
  state.full = draw.below(32) == 0;
  state.is_left_to_host = draw.below(8) == 0;
  return state;
}

std::unique_ptr<Firewall> translating(classify::Engine engine) {
  Firewall::Setup setup;
  setup.nat = NatRules{Hook::prerouting, classify::Ruleset(), {}};
  return std::move(*Firewall::build(rules_about_random_frames(), engine, std::move(setup)));
}

class TranslatingOnDevice : public ::testing::TestWithParam<Way> {};

INSTANTIATE_TEST_SUITE_P(Ways, TranslatingOnDevice, ::testing::ValuesIn(testing::kWays),
                         [](const auto& way) { return way.param.name; });

/// Runs the lane's batch, and compares it with what the host makes of it. Returns how many packets were written to.
std::size_t expect_as_on_host(OwnLane& lane, const Firewall& firewall, RandomFrames& draw) {
  Batch& batch = lane.batch();
  const std::size_t bytes = sizeof(TranslatingState);
  EXPECT_EQ(lane.shape().stages.at(0).state_bytes, bytes);
  std::vector<TranslatingState> states;
  for (std::size_t i = 0; i < batch.size(); ++i) states.push_back(random_state(draw));
  std::memcpy(lane.lane().states(0, 0), states.data(), states.size() * bytes);
  EXPECT_TRUE(lane.start());
  EXPECT_EQ(lane.wait(), gpu::Progress::kDone);
  const ring::SegmentResults& results = lane.lane().results();

  const classify::Ruleset& rules = firewall.rules();
  const classify::LinearView engine{rules.entries.data(), rules.conditions.data(), rules.port_ranges.data(),
                                    rules.ranges6.data(), static_cast<std::uint32_t>(rules.entries.size())};
  const TranslatingCore<classify::LinearView> core{{{engine, classify::view_of(rules)}}};
  const std::uint8_t *record = results.records, *frame = results.frames;
  std::size_t written = 0;
  for (std::size_t i = 0; i < batch.size(); ++i) {
    SCOPED_TRACE("packet " + std::to_string(i));
    PacketDescriptor descriptor = batch.packets()[i];
    const std::uint8_t* const came = batch.view(i).frame;
    Bytes expected(came, came + descriptor.length), actual = expected;
    expected.reserve(expected.size() + 1);
    const PacketView on_host{expected.data(), &descriptor};
    parse(on_host);
    std::uint32_t counter = 0;
    const Verdict verdict = core(on_host, states[i], counter);
    const Verdict of_device = results.verdicts[i];
    if (of_device.kind == VerdictKind::punt) {
      // The lane leaves packets to the host whose headers are longer than what crosses.
      EXPECT_TRUE(states[i].is_left_to_host || !lane.shape().frames_up);
      continue;
    }
    EXPECT_EQ(of_device, verdict);
    std::uint32_t found = 0;
    std::memcpy(&found, results.findings.at(0) + i * sizeof found, sizeof found);
    EXPECT_EQ(found, counter);
    if (of_device.alive() && lane.shape().frames_down) {
      actual.assign(frame, frame + descriptor.length);
      frame += aligned_frame(descriptor.length);
    } else if (of_device.alive()) {
      PacketDescriptor unparsed = batch.packets()[i];
      ring::take_layout(record, {actual.data(), &unparsed});
      ring::scatter(lane.shape().down, record, {actual.data(), &unparsed});
      record += lane.shape().down.bytes;
    }
    if (of_device.alive()) {
      EXPECT_EQ(actual, expected);
      written += expected == Bytes(came, came + descriptor.length) ? 0 : 1;
    }
    if (::testing::Test::HasFailure()) break;
  }
  batch.reset(0);
  return written;
}

TEST_P(TranslatingOnDevice, WritesWhatTheHostWrites) {
  for (const classify::Engine engine : kEngines) {
    const auto firewall = translating(engine);
    OwnLane lane(*firewall, GetParam());
    RandomFrames draw(1);
    std::size_t packets = 0, written = 0;
    for (int round = 0; round < 20; ++round) {
      for (std::uint32_t n = 1 + draw.below(4000); n > 0; --n, ++packets) {
        if (!lane.append(draw.frame(), static_cast<PortIndex>(draw.below(4)))) break;
      }
      written += expect_as_on_host(lane, *firewall, draw);
      if (HasFailure()) return;
    }
    EXPECT_GT(written, packets / 20);
  }
}

TEST_P(TranslatingOnDevice, WritesByItsRecipeWhatTheHostWrites) {
  for (const classify::Engine engine : {classify::Engine::linear, classify::Engine::bitvector}) {
    const auto firewall = translating(engine);
    testing::FromRecipe by_recipe(*firewall, remote_kernel());
    OwnLane lane(by_recipe, GetParam());
    RandomFrames draw(1);
    std::size_t packets = 0, written = 0;
    for (int round = 0; round < 5; ++round) {
      for (std::uint32_t n = 1 + draw.below(4000); n > 0; --n, ++packets) {
        if (!lane.append(draw.frame(), static_cast<PortIndex>(draw.below(4)))) break;
      }
      written += expect_as_on_host(lane, *firewall, draw);
      if (HasFailure()) return;
    }
    EXPECT_GT(written, packets / 20);
  }
}

}  // namespace
}  // namespace penstock::firewall
