// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Compares random options on random buffers of few letters, which match often and at many positions, with a search that
// tries every position.

#include <gtest/gtest.h>

#include <memory>
#include <random>
#include <string>
#include <vector>

#include "base/testing/rounds.h"
#include "nf/nids/detect/buffer_program.h"
#include "nf/nids/detect/content_search.h"
#include "nf/nids/detect/naive_inspection_for_test.h"
#include "nf/nids/detect/random_inspection_for_test.h"

namespace penstock::nids {
namespace {

struct Outcomes {
  unsigned cases = 0, found = 0, naive_found = 0, wrong = 0;
};

Outcomes compare(std::uint64_t seed, unsigned cases, Buffer kind, bool complete) {
  RandomInspection random{std::mt19937_64(seed)};
  InspectionScratch scratch;
  Outcomes outcomes;
  for (; outcomes.cases < cases && outcomes.wrong < 5; ++outcomes.cases) {
    const std::vector<BufferMatch> options = random.options(complete);
    auto program = BufferProgram::compile(BufferMatches{kind, options}, {});
    EXPECT_TRUE(program);
    if (!program) break;
    for (int i = 0; i < 3; ++i) {
      const std::vector<std::uint8_t> bytes = random.buffer(i == 0 ? 8 : 40);
      // Memory of exactly its size, so that reads past its end are detected.
      const auto buffer = std::make_unique<std::uint8_t[]>(bytes.size());
      std::copy(bytes.begin(), bytes.end(), buffer.get());
      const std::span<const std::uint8_t> span(buffer.get(), bytes.size());
      scratch.begin_frame();
      scratch.begin_rule();
      const std::uint64_t limits = scratch.counters().inspection_limits;
      const bool found = program->matches(span, scratch);
      if (scratch.counters().inspection_limits != limits) continue;
      const bool naive_found = NaiveInspection(kind, options, span).matches();
      outcomes.found += found ? 1 : 0;
      outcomes.naive_found += naive_found ? 1 : 0;
      if (found == naive_found || (!complete && !found)) continue;
      ++outcomes.wrong;
      std::string text;
      for (const BufferMatch& match : options) text += text_of(match) + "; ";
      ADD_FAILURE() << "seed " << seed << ": " << text << " on " << quoted(bytes) << ": " << found << ", exhaustively "
                    << naive_found;
    }
  }
  return outcomes;
}

TEST(BufferProgramOracle, FindsWhatTryingEveryPositionFinds) {
  const Outcomes outcomes = compare(1, penstock::testing::rounds(200'000), Buffer::tcp_header, true);
  EXPECT_GT(outcomes.found, outcomes.cases / 4);  // three buffers per case
}

TEST(BufferProgramOracle, FindsNothingThatTryingEveryPositionDoesNot) {
  for (const Buffer buffer : {Buffer::payload, Buffer::tcp_header}) {
    const Outcomes outcomes = compare(2, penstock::testing::rounds(150'000), buffer, false);
    EXPECT_GT(outcomes.found, outcomes.cases / 4);
    // Suricata gives up only a few matches.
    EXPECT_LT(outcomes.naive_found - outcomes.found, outcomes.naive_found / 10);
    RecordProperty("given_up", static_cast<int>(outcomes.naive_found - outcomes.found));
  }
}

TEST(ContentSearchOracle, FindsTheFirstPosition) {
  std::mt19937_64 random(3);
  for (std::uint32_t round = 0; round < penstock::testing::rounds(300'000); ++round) {
    const auto below = [&](std::size_t end) { return static_cast<std::size_t>(random() % end); };
    const auto letter = [&] {
      return static_cast<std::uint8_t>("abABz\x5a\x7a\x40\x60\x00\xff"[below(round % 3 == 0 ? 2 : 11)]);
    };
    std::vector<std::uint8_t> needle(1 + below(round % 5 == 0 ? 40 : 4));
    for (std::uint8_t& byte : needle) byte = letter();
    const std::size_t size = below(round % 2 == 0 ? 24 : 160);
    const auto text = std::make_unique<std::uint8_t[]>(size);
    for (std::size_t i = 0; i < size; ++i) text[i] = letter();
    if (size >= needle.size() && round % 3 != 1) {
      std::copy(needle.begin(), needle.end(), text.get() + below(size - needle.size() + 1));
    }
    const bool nocase = round % 7 < 3;
    std::int64_t expected = -1;
    for (std::size_t at = 0; expected < 0 && at + needle.size() <= size; ++at) {
      bool same = true;
      for (std::size_t i = 0; i < needle.size(); ++i) {
        const auto lower = [&](std::uint8_t byte) -> int {
          return nocase && byte >= 'A' && byte <= 'Z' ? byte - 'A' + 'a' : byte;
        };
        same = same && lower(text[at + i]) == lower(needle[i]);
      }
      if (same) expected = static_cast<std::int64_t>(at);
    }
    ASSERT_EQ(ContentSearch(needle, nocase).find({text.get(), size}), expected)
        << quoted(needle) << " in " << quoted({text.get(), size}) << " nocase " << nocase;
  }
}

}  // namespace
}  // namespace penstock::nids
