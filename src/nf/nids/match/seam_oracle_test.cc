// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Compares the scan of segments with the state of their flow with a search for each literal in the whole stream.

#include <gtest/gtest.h>

#include "nf/nids/match/literals_for_test.h"
#include "nf/nids/match/pattern_matcher.h"
#include "nf/nids/match/rarity.h"
#include "nf/nids/match/scan_tables.h"
#include "nf/nids/match/seam_core.h"

namespace penstock::nids {
namespace {

using testing::Bytes;
using testing::Draw;
using testing::Found;
using testing::literal;

/// Does on the host what a device does with a segment: scans the payload, then the seam.
class Scan {
 public:
  Scan(const std::vector<Literal>& literals, ScanEngine engine) : literals_(literals), tables_(tables_of(engine)) {}

  Found segment(FlowState state, std::span<const std::uint8_t> payload) {
    const Bytes own(payload.begin(), payload.end());  // a sanitizer detects reads past its end
    PacketLiterals finding;
    finding.flags = PacketLiterals::kScanned | PacketLiterals::kPayload;
    Found in_payload = testing::search(literals_, own);
    if (const auto* const automaton = std::get_if<AhoCorasickTables>(&tables_.engine)) {
      scan_seam(automaton->view<std::uint16_t>(), state, own.data(), own.data() + own.size(), finding);
    } else {
      scan_seam(std::get<HashedFilterTables>(tables_.engine).view(), state, own.data(), own.data() + own.size(),
                finding);
    }
    EXPECT_EQ((finding.flags & PacketLiterals::kWithState) != 0, state.count() > 0 && !own.empty());
    EXPECT_TRUE(finding.complete()) << "too many for the test";
    across += finding.count;
    in_payload.insert(finding.list().begin(), finding.list().end());
    return in_payload;
  }
  std::size_t across = 0;

 private:
  ScanTables tables_of(ScanEngine engine) const {
    auto built = build_scan_tables(literals_, engine);
    EXPECT_TRUE(built) << to_string(built.error());
    return std::move(*built);
  }
  const std::vector<Literal>& literals_;
  ScanTables tables_;
};

/// Literals that end in stream[begin, end), found by trying every position of the whole stream.
Found ending_in(const std::vector<Literal>& literals, const Bytes& stream, std::size_t begin, std::size_t end) {
  Found found;
  for (std::uint32_t i = 0; i < literals.size(); ++i) {
    const std::size_t size = literals[i].bytes.size();
    for (std::size_t at = begin; at < end; ++at) {
      if (at + 1 < size) continue;
      if (testing::occurs(literals[i], std::span(stream).subspan(at + 1 - size, size))) found.insert(i);
    }
  }
  return found;
}

class SeamOracle : public ::testing::TestWithParam<ScanEngine> {
 protected:
  void expect_all_found(const std::vector<Literal>& literals, Scan& scan, const Bytes& stream, Draw& draw) {
    FlowState state;
    for (std::size_t at = 0; at < stream.size();) {
      const std::size_t size = std::min<std::size_t>(stream.size() - at, draw.below(draw.one_in(2) ? 4 : 20));
      const auto payload = std::span(stream).subspan(at, size);
      ASSERT_EQ(scan.segment(state, payload), ending_in(literals, stream, at, at + size))
          << "bytes " << at << " to " << at + size;
      state.append(payload);
      ASSERT_EQ(state.count(), std::min<std::size_t>(at + size, FlowState::kMost));
      at += size;
    }
  }
};

INSTANTIATE_TEST_SUITE_P(Engines, SeamOracle,
                         ::testing::Values(ScanEngine::aho_corasick_strips, ScanEngine::hashed_filter),
                         [](const auto& engine) {
                           return engine.param == ScanEngine::aho_corasick_strips ? "AhoCorasick" : "HashedFilter";
                         });

//   stream     ┄┄┄┄┄┄ n e e | d | l e ┄┄┄┄┄         in segments of 0 to 19 bytes
TEST_P(SeamOracle, SegmentsWithStateHaveTheLiteralsOfTheStreamThatEndInThem) {
  for (const bool few_letters : {false, true}) {
    Draw draw(few_letters ? 1 : 2);
    std::vector<Literal> literals{literal("a"), literal("ab"), literal("abc", true), literal("needle"),
                                  literal("Eight by", true)};
    for (int i = 0; i < (few_letters ? 4 : 60); ++i) literals.push_back(draw.rule_literal());
    literals = cut_literals(literals);
    Scan scan(literals, GetParam());
    for (int round = 0; round < 300; ++round) {
      Bytes stream = few_letters ? draw.bytes(80, "abcC") : draw.bytes(120);
      for (int i = 0; i < 4; ++i) draw.plant(literals[draw.below(static_cast<std::uint32_t>(literals.size()))], stream);
      ASSERT_NO_FATAL_FAILURE(expect_all_found(literals, scan, stream, draw));
    }
    EXPECT_GT(scan.across, 300U);
  }
}

TEST_P(SeamOracle, ALiteralIsFoundWhereverItIsCut) {
  const std::vector<Literal> literals{literal("needle"), literal("xy"), literal("CaseLess", true), literal("z")};
  Scan scan(literals, GetParam());
  for (const char* const text : {"needle", "xy", "cAsElEsS"}) {
    const Bytes stream = testing::bytes_of("............" + std::string(text) + "............");
    for (std::size_t cut = 1; cut < stream.size(); ++cut) {
      FlowState state;
      state.append(std::span(stream).first(cut));
      ASSERT_EQ(scan.segment(state, std::span(stream).subspan(cut)), ending_in(literals, stream, cut, stream.size()))
          << text << " cut at " << cut;
    }
  }
}

TEST_P(SeamOracle, FindsNothingInTheStateAloneOrWithTheWrongState) {
  const std::vector<Literal> literals{literal("needle"), literal("n")};
  Scan scan(literals, GetParam());
  FlowState state;
  state.append(testing::bytes_of("needle"));
  EXPECT_EQ(scan.segment(state, testing::bytes_of("hay")), Found{});
  EXPECT_EQ(scan.segment({}, testing::bytes_of("dle")), Found{});
  const Bytes zeros(7, std::uint8_t{0});
  const std::vector<Literal> of_zeros{{{0, 0, 0, 'x'}, false}};
  Scan for_zeros(of_zeros, GetParam());
  EXPECT_EQ(for_zeros.segment({}, testing::bytes_of("x")), Found{}) << "no bytes are not seven zeros";
  state.append(zeros);
  EXPECT_EQ(for_zeros.segment(state, testing::bytes_of("x")), Found{0});
}

TEST(FlowStates, AreTheLastBytesOfWhatWasAppended) {
  FlowState whole;
  whole.append(testing::bytes_of("0123456789"));
  EXPECT_EQ(whole.count(), 7U);
  FlowState parts;
  for (const char* const part : {"0", "", "12", "3456", "78", "9"}) parts.append(testing::bytes_of(part));
  EXPECT_EQ(parts, whole);
  FlowState tail;
  EXPECT_TRUE(whole.ends_with(tail));
  tail.append(testing::bytes_of("789"));
  EXPECT_TRUE(whole.ends_with(tail));
  EXPECT_FALSE(tail.ends_with(whole));
  tail.append(testing::bytes_of("9"));
  EXPECT_FALSE(whole.ends_with(tail));
}

}  // namespace
}  // namespace penstock::nids
