// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "nf/ipsec/esp/replay_window.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "nf/ipsec/esp/sequence_core.h"

namespace penstock::ipsec {
namespace {

/// A naive reference implementation that remembers every received number.
class Model {
 public:
  explicit Model(std::uint32_t packets) : packets_(packets) {}

  Reason check(std::uint64_t sequence) const {
    if (packets_ == 0) return Reason::none;
    const std::uint64_t top = received_.empty() ? 0 : *received_.rbegin();
    if (sequence == 0 || (top >= packets_ && sequence <= top - packets_)) return Reason::too_old;
    return received_.count(sequence) != 0 ? Reason::replayed : Reason::none;
  }
  Reason accept(std::uint64_t sequence) {
    const Reason reason = check(sequence);
    if (reason == Reason::none) received_.insert(sequence);
    return reason;
  }
  std::uint64_t top() const { return received_.empty() ? 0 : *received_.rbegin(); }

 private:
  std::uint32_t packets_;
  std::set<std::uint64_t> received_;
};

RC_GTEST_PROP(ReplayWindow, AnswersAsTheSetOfAllReceivedNumbers, ()) {
  const auto packets = *rc::gen::element(0U, 1U, 31U, 32U, 33U, 63U, 64U, 65U, 100U, 128U, 1024U, 4096U, 5000U);
  const auto begin =
      *rc::gen::element(std::uint64_t{0}, std::uint64_t{31}, std::uint64_t{0xffff'ff00}, std::uint64_t{1} << 37,
                        (std::uint64_t{1} << 45) - 100, std::uint64_t{0x7fff'ffff'ffff'0000});
  std::mt19937_64 random(*rc::gen::arbitrary<std::uint64_t>());
  ReplayWindow window(packets);
  Model model(packets);
  std::uint64_t at = begin;
  for (int i = 0; i < 3000; ++i) {
    // Mostly around the window and its edges; now and then far ahead.
    const std::uint64_t kind = random() % 100;
    if (kind < 50) {
      at += random() % 3;
    } else if (kind == 50) {
      at += random() % (3 * std::uint64_t{packets} + 100);
    } else if (kind == 51) {
      at += std::uint64_t{1} << random() % 33;
    }
    const std::uint64_t reach = 2 * std::uint64_t{packets} + 70;
    std::uint64_t sequence = at + random() % 4;
    if (kind % 2 == 0) sequence -= std::min(sequence, random() % reach);
    if (kind % 7 == 0) sequence = at - std::min<std::uint64_t>(at, packets) + random() % 2;
    const Reason expected = model.check(sequence);
    RC_ASSERT(window.check(sequence) == expected);
    if (kind % 3 == 0) continue;  // failed authentication
    RC_ASSERT(window.accept(sequence) == expected);
    static_cast<void>(model.accept(sequence));
    RC_ASSERT(window.top() == model.top());
  }
}

TEST(ReplayWindow, KeepsToSizesThatAreNoMultipleOfAWord) {
  for (const std::uint32_t packets : {1U, 20U, 32U, 33U, 64U}) {
    ReplayWindow window(packets);
    ASSERT_EQ(window.accept(1000), Reason::none);
    EXPECT_EQ(window.accept(1000 - packets), Reason::too_old);
    EXPECT_EQ(window.accept(1000 - packets + 1), packets == 1 ? Reason::replayed : Reason::none);
  }
}

TEST(ReplayWindow, TakesNoNumberZero) {
  ReplayWindow window(64);
  EXPECT_EQ(window.accept(0), Reason::too_old);
  EXPECT_EQ(window.accept(1), Reason::none);
}

TEST(ReplayWindow, OfNoPacketsRefusesNothing) {
  ReplayWindow window(0);
  for (const std::uint64_t sequence : {5, 5, 0, 1}) EXPECT_EQ(window.accept(sequence), Reason::none);
  EXPECT_EQ(window.top(), 5U);
}

TEST(ReplayWindow, GoesOnFromWhatWasReceivedBefore) {
  ReplayWindow window(64, 100);
  EXPECT_EQ(window.accept(100), Reason::replayed);
  EXPECT_EQ(window.accept(99), Reason::none);
  EXPECT_EQ(window.accept(36), Reason::too_old);
  EXPECT_EQ(window.accept(37), Reason::none);
}

TEST(InferSequence, FollowsAppendixA22) {
  // Case A: the window lies in one subspace.
  EXPECT_EQ(infer_sequence(0x5'0000'0064, 64, 0x25), 0x5'0000'0025U);
  EXPECT_EQ(infer_sequence(0x5'0000'0064, 64, 0x24), 0x6'0000'0024U);
  EXPECT_EQ(infer_sequence(0x5'0000'0064, 64, 0xffff'ffff), 0x5'ffff'ffffU);
  // Case B: it spans two.
  EXPECT_EQ(infer_sequence(0x5'0000'0010, 64, 0xffff'ffd1), 0x4'ffff'ffd1U);
  EXPECT_EQ(infer_sequence(0x5'0000'0010, 64, 0xffff'ffd0), 0x5'ffff'ffd0U);
  EXPECT_EQ(infer_sequence(0x5'0000'0010, 64, 0), 0x5'0000'0000U);
  // There is no subspace before the first.
  EXPECT_EQ(infer_sequence(0, 64, 0xffff'fff0), 0xffff'fff0U);
  // Without a window, the nearest number.
  EXPECT_EQ(infer_sequence(0x5'0000'0010, 0, 0xffff'0000), 0x4'ffff'0000U);
  EXPECT_EQ(infer_sequence(0x5'0000'0010, 0, 0x7000'0000), 0x5'7000'0000U);
}

RC_GTEST_PROP(InferSequence, FindsEachNumberOfTheWindowAndAheadOfIt, ()) {
  const auto packets = *rc::gen::element(1U, 32U, 64U, 4096U);
  const auto top = *rc::gen::arbitrary<std::uint64_t>() >> 2;
  const auto ahead = *rc::gen::inRange<std::uint64_t>(0, (std::uint64_t{1} << 32) - packets);
  const auto back = *rc::gen::inRange<std::uint64_t>(0, packets);
  RC_ASSERT(infer_sequence(top, packets, static_cast<std::uint32_t>(top + ahead)) == top + ahead);
  if (back <= top) RC_ASSERT(infer_sequence(top, packets, static_cast<std::uint32_t>(top - back)) == top - back);
}

std::optional<nlohmann::json> corpus_sequences() {
  const char* const corpus = std::getenv("PENSTOCK_CORPUS");
  const std::string root = corpus != nullptr ? corpus : PENSTOCK_SOURCE_DIR "/../shared/data";
  std::ifstream file(root + "/ipsec/replay_sequences.json");
  if (!file) return std::nullopt;
  return nlohmann::json::parse(file);
}

TEST(ReplayWindow, TakesOfOtherImplementationsTestsAsManyAsTheySay) {
  const auto corpus = corpus_sequences();
  if (!corpus) GTEST_SKIP() << "no corpus: set PENSTOCK_CORPUS to the folder of test data";
  std::size_t steps = 0;
  for (const auto& sequence : (*corpus)["sequences"]) {
    const auto packets = sequence["window"].get<std::uint32_t>();
    const bool esn = sequence["esn"];
    auto window = std::make_unique<ReplayWindow>(packets);
    for (const auto& step : sequence["steps"]) {
      if (step.contains("set_rx_top")) {
        window = std::make_unique<ReplayWindow>(packets, step["set_rx_top"].get<std::uint64_t>());
      }
      if (!step.contains("seqs") || (step.contains("only_if_window") && step["only_if_window"] != packets)) continue;
      const bool authentic = !step.value("bad_icv", false);
      std::size_t accepted = 0;
      for (const std::uint64_t number : step["seqs"]) {
        const auto low = static_cast<std::uint32_t>(number);
        const std::uint64_t inferred = esn ? infer_sequence(window->top(), packets, low) : low;
        // The ICV covers the upper half.
        if (!authentic || inferred != number || window->check(inferred) != Reason::none) continue;
        accepted += window->accept(inferred) == Reason::none ? 1 : 0;
      }
      EXPECT_EQ(accepted, step["accepted"].get<std::size_t>()) << sequence["name"] << " " << step.dump();
      ++steps;
    }
  }
  EXPECT_GT(steps, 100U);
}

TEST(ReplayWindow, GivesEachNumberToOneOfItsThreadsAlone) {
  constexpr unsigned kThreads = 4;
  for (const std::uint32_t packets : {1U, 64U, 4096U}) {
    constexpr std::uint64_t kNumbers = 100'000;
    ReplayWindow window(packets);
    std::vector<std::vector<std::uint64_t>> taken(kThreads);
    std::atomic<std::uint64_t> next = 1;
    {
      std::vector<std::jthread> threads;
      for (unsigned t = 0; t < kThreads; ++t) {
        threads.emplace_back([&, t] {
          std::mt19937_64 random(t);
          // All threads try numbers around the same place, so that they contend for words, the top, and the window's
          // edge.
          for (std::uint64_t n = 0; (n = next.fetch_add(1)) < kNumbers;) {
            const std::uint64_t reach = packets + 80;
            const std::uint64_t sequence = n < reach || n % 2 == 0 ? n : n - random() % reach;
            static_cast<void>(window.check(sequence));
            if (window.accept(sequence) == Reason::none) taken[t].push_back(sequence);
          }
        });
      }
    }
    std::set<std::uint64_t> once;
    for (const auto& numbers : taken) {
      for (const std::uint64_t number : numbers) EXPECT_TRUE(once.insert(number).second) << number;
    }
    EXPECT_GT(once.size(), kNumbers / 4);
    EXPECT_EQ(window.top(), *once.rbegin());
    // What is left of the window knows them all.
    for (const std::uint64_t number : once) EXPECT_NE(window.check(number), Reason::none);
  }
}

}  // namespace
}  // namespace penstock::ipsec
