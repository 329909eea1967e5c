// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "evasion/generator.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>

#include "evasion/draft.h"
#include "evasion/minimise.h"

namespace penstock::evasion {
namespace {

TEST(Generator, TheSameSeedGivesTheSameConversation) {
  for (std::uint64_t index = 0; index < 200; ++index) {
    const Script one = generate(3, index, {}), again = generate(3, index, {});
    EXPECT_EQ(outline_of(one), outline_of(again));
    EXPECT_EQ(one.connections.size(), again.connections.size());
    EXPECT_EQ(one.timing, again.timing);
  }
}

TEST(Generator, EveryMoveThatIsOnIsDrawn) {
  std::set<std::string_view> drawn;
  for (std::uint64_t index = 0; index < 5000; ++index) {
    for (const std::string_view move : generate(1, index, {}).moves) drawn.insert(move);
  }
  for (const Move* move : all_moves()) EXPECT_EQ(drawn.contains(move->name), move->weight > 0) << move->name;
}

// Whatever number of moves changed it.
TEST(Generator, AScriptRefersOnlyToThingsThatExist) {
  for (std::uint64_t index = 0; index < 20'000; ++index) {
    const Script script = generate(2, index, {.most_moves = 12});
    for (const Step& step : script.steps) {
      if (step.kind == Step::Kind::resend) {
        EXPECT_LT(step.number, script.connections.size());
      }
      if (step.kind != Step::Kind::packet) continue;
      if (step.packet.protocol == 6) {
        EXPECT_LT(step.packet.connection, script.connections.size());
      }
      for (const Fragment& fragment : step.packet.fragments) {
        EXPECT_LE(fragment.begin, fragment.end);
        EXPECT_EQ(fragment.begin % 8, 0U);
      }
    }
  }
}

TEST(Generator, OnlyRequestedMovesAreDrawn) {
  for (std::uint64_t index = 0; index < 500; ++index) {
    for (const std::string_view move : generate(1, index, {.only = {"decoy_"}, .except = {"decoy_rst"}}).moves) {
      EXPECT_TRUE(move.starts_with("decoy_") && move != "decoy_rst") << move;
    }
  }
}

// Without attacks, the segments cover the stream, each byte once, and the signature is in it.
TEST(Generator, SegmentsWithoutAttacksAreTheStream) {
  for (std::uint64_t index = 0; index < 300; ++index) {
    const Script script = generate(1, index, {.only = {"none"}});
    if (script.signature == SignatureKind::udp || script.signature == SignatureKind::from_host) continue;
    Bytes sent;
    for (const Step& step : script.steps) {
      if (!step.genuine) continue;
      EXPECT_EQ(step.packet.at, std::ssize(sent));
      sent.insert(sent.end(), step.packet.payload.begin(), step.packet.payload.end());
    }
    EXPECT_EQ(sent, script.connections[0].stream);
    const std::string& text = script.signature_text;
    EXPECT_NE(std::search(sent.begin(), sent.end(), text.begin(), text.end()), sent.end());
  }
}

// Here a script counts as an evasion as long as it contains its first decoy.
TEST(Minimise, RemovesWhatDoesNotMatter) {
  const Script script = generate(1, 3, {.only = {"decoy_dies"}, .most_moves = 8});
  const auto evades = [](const Script& candidate) {
    return std::any_of(candidate.steps.begin(), candidate.steps.end(),
                       [](const Step& step) { return step.packet.dies; });
  };
  ASSERT_TRUE(evades(script));
  const Script least = minimised(script, evades);
  EXPECT_EQ(least.steps.size(), 1U);
  EXPECT_TRUE(least.steps[0].packet.dies);
}

}  // namespace
}  // namespace penstock::evasion
