// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The fuzzer with a fixed seed: nothing evades intrusion detection with default settings, and the fuzzer would find
// evasions. Skipped if no kernel host can be created.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>

#include "base/testing/rounds.h"
#include "evasion/drawing.h"
#include "evasion/fuzzer.h"
#include "evasion/minimise.h"

namespace penstock::evasion {
namespace {

constexpr std::uint64_t kConversations = penstock::testing::rounds(40'000);

/// The first few evasions, minimised.
std::string drawings_of(const FuzzResult& result, const FuzzOptions& options) {
  constexpr std::size_t kMost = 3;
  std::string text;
  for (std::size_t i = 0; i < std::min(kMost, result.findings.size()); ++i) {
    const Finding& evasion = result.findings[i];
    auto bed = Replay::make(evasion.profile, options.sensor);
    if (!bed) return text;
    const auto evades = [&](const Script& candidate) {
      return (*bed)->play(candidate, evasion.mode, evasion.workers).evaded;
    };
    Script script = generate(options.seed, evasion.index, options.generator);
    if (evades(script)) script = minimised(std::move(script), evades);
    const Replay::Outcome outcome = (*bed)->play(script, evasion.mode, evasion.workers);
    text += fmt::format("\n{}, {} workers, host {}: evasion_fuzzer --seed {} --replay {}\n{}", name_of(evasion.mode),
                        evasion.workers, name_of(evasion.profile), options.seed, evasion.index,
                        drawing_of(outcome.transcript, script));
  }
  return text;
}

class EvasionFuzz : public ::testing::Test {
 protected:
  void run() {
    allow_network_namespaces();
    auto result = fuzz(options_);
    if (!result) GTEST_SKIP() << "no host in a network namespace here: " << to_string(result.error());
    result_ = std::move(*result);
    RecordProperty("judge", "Linux " + KernelHost::kernel_release());
  }

  FuzzOptions options_;
  FuzzResult result_;
};

TEST_F(EvasionFuzz, NothingEvadesTheDefaultSettings) {
  options_.conversations = kConversations;
  options_.profiles = all_profiles();
  run();
  if (IsSkipped()) return;
  EXPECT_EQ(result_.findings.size(), 0U) << drawings_of(result_, options_);
  // Otherwise the test would prove nothing.
  const FuzzCounts& off_path = result_.counts[Mode::off_path];
  EXPECT_GE(off_path.read, off_path.conversations / 100 * 80);
}

TEST_F(EvasionFuzz, WithoutAttacksTheHostReadsEverySignatureOffThePathAndNoneInline) {
  options_.conversations = 2000;
  options_.generator.only = {"none"};
  run();
  if (IsSkipped()) return;
  EXPECT_EQ(result_.counts[Mode::off_path].read, 2000U);
  EXPECT_EQ(result_.counts[Mode::on_path].stopped, 2000U);
  EXPECT_EQ(result_.findings.size(), 0U) << drawings_of(result_, options_);
}

// A sensor that inspects each packet on its own misses signatures that are split over two packets.
TEST_F(EvasionFuzz, FindsWhatEvadesASensorWithoutStreams) {
  options_.conversations = 500;
  options_.generator.only = {"cut"};
  options_.sensor = {{"tracking", "packets"}};
  run();
  if (IsSkipped()) return;
  EXPECT_GT(result_.findings.size(), 50U);
}

// Inline, harmless conversations arrive.
TEST_F(EvasionFuzz, WithoutAttacksHarmlessConversationsPass) {
  options_.conversations = 2000;
  options_.generator.only = {"none", "reorder", "cut", "resend_same", "fragments", "host_speaks"};
  options_.generator.innocent = true;
  run();
  if (IsSkipped()) return;
  EXPECT_EQ(result_.counts[Mode::on_path].stopped, 0U);
  EXPECT_EQ(result_.counts[Mode::off_path].false_alerts, 0U);
}

}  // namespace
}  // namespace penstock::evasion
