// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "nf/nids/detect/stream_findings.h"

#include <gmock/gmock.h>

#include <map>
#include <random>
#include <set>

namespace penstock::nids {
namespace {

using stack::Direction;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;
using Range = StreamFindings::Range;
using Found = StreamFindings::Found;

constexpr std::uint64_t kReach = 5;

class StreamFindingsTest : public ::testing::Test {
 protected:
  void note(std::uint64_t begin, std::uint64_t end, std::vector<std::uint32_t> literals = {}, bool known = true) {
    highest_ = std::max(highest_, end);
    findings_.note(flow_, Direction::to_server, {begin, end, highest_, known}, literals);
  }
  void searched(std::uint64_t begin, std::uint64_t end, std::vector<Found> found = {}) {
    findings_.searched(flow_, Direction::to_server, begin, end, kReach, found);
  }
  /// The ranges left to scan.
  std::vector<Range> rest_of(std::uint64_t begin, std::uint64_t end) {
    StreamFindings::Known known;
    findings_.look_up(flow_, Direction::to_server, begin, end, kReach, known);
    literals_.clear();
    for (std::size_t i = 0; i < known.literal_count; ++i) literals_.push_back(known.literals[i].literal);
    return {known.rest.begin(), known.rest.begin() + static_cast<std::ptrdiff_t>(known.rest_count)};
  }

  StreamFindings findings_{4};
  stack::Flow flow_;
  std::uint64_t highest_ = 0;
  std::vector<std::uint32_t> literals_;  // of the last lookup
};

// --- Payloads searched by a GPU ------------------------------------------------------------------------------------

TEST_F(StreamFindingsTest, LeaveTheSeamsBetweenSegments) {
  note(0, 0);  // the handshake
  note(0, 100, {7});
  note(100, 250, {8, 9});
  EXPECT_THAT(rest_of(0, 250), ElementsAre(Range{95, 105}));
  EXPECT_THAT(literals_, ElementsAre(7, 8, 9));
  EXPECT_THAT(rest_of(100, 250), IsEmpty());
  EXPECT_THAT(literals_, ElementsAre(8, 9));
}

TEST_F(StreamFindingsTest, LeaveBytesBeforeTheFirstNote) {
  note(0, 100);
  EXPECT_THAT(rest_of(0, 100), ElementsAre(Range{0, 100}));
  note(50, 150);  // the stream may have kept an earlier packet's bytes for its first half
  EXPECT_THAT(rest_of(50, 150), ElementsAre(Range{50, 105}));
  EXPECT_THAT(rest_of(100, 150), IsEmpty());
}

/// The stream may have kept the bytes of an overlapping segment instead.
TEST_F(StreamFindingsTest, LeaveSegmentsThatWereNotSearched) {
  note(0, 0);
  note(0, 100, {}, false);
  note(100, 200);
  EXPECT_THAT(rest_of(0, 200), ElementsAre(Range{0, 105}));
  EXPECT_THAT(rest_of(120, 200), IsEmpty());
}

// Where segments overlap, the stream may have the bytes of either.
//
//     0             100
//     |-- noted -----|
//           |-- overlaps with it --|
//                                  |-- noted --|
//           50                    200         300
TEST_F(StreamFindingsTest, LeaveOverlappingSegments) {
  note(0, 0);
  note(0, 100);
  note(50, 200);
  note(200, 300);
  EXPECT_THAT(rest_of(0, 300), ElementsAre(Range{45, 205}));
  EXPECT_THAT(rest_of(220, 300), IsEmpty());
}

TEST_F(StreamFindingsTest, LeaveGaps) {
  note(0, 0);
  note(0, 100);
  note(120, 200);
  EXPECT_THAT(rest_of(0, 200), ElementsAre(Range{95, 125}));
  EXPECT_THAT(rest_of(0, 100), IsEmpty());
  EXPECT_THAT(rest_of(120, 200), IsEmpty());
  note(90, 130);
  EXPECT_THAT(rest_of(0, 200), ElementsAre(Range{85, 135}));
}

TEST_F(StreamFindingsTest, ForgetTheOldestWhenFull) {
  note(0, 0);
  for (std::uint64_t at = 0; at < 10'000; at += 100) note(at, at + 100);
  EXPECT_THAT(rest_of(0, 100), ElementsAre(Range{0, 100}));
  EXPECT_THAT(rest_of(9900, 10'000), IsEmpty());
}

// --- Payloads searched with the state of their flow ----------------------------------------------------------------

/// A stream of digits; its segments come with the bytes before them as state.
class JoinedFindings : public StreamFindingsTest {
 protected:
  static std::vector<std::uint8_t> digits(std::uint64_t begin, std::uint64_t end) {
    std::vector<std::uint8_t> bytes;
    for (std::uint64_t i = begin; i < end; ++i) bytes.push_back(static_cast<std::uint8_t>('0' + i * i % 10));
    return bytes;
  }
  void note_with_state(std::uint64_t begin, std::uint64_t end, bool is_right = true, bool known = true) {
    FlowState state;
    state.append(digits(begin - std::min<std::uint64_t>(begin, 9), begin));
    if (!is_right) state.append(digits(0, 1));
    const auto payload = digits(begin, end);
    highest_ = std::max(highest_, end);
    findings_.note(flow_, Direction::to_server, {begin, end, highest_, known, &state, payload}, {});
  }
};

//     0       100      150      250
//     |--------|········|--------|       each with the last bytes before it
TEST_F(JoinedFindings, LeaveNothingOfSegmentsThatWereSearchedAsOne) {
  note_with_state(0, 0);
  note_with_state(0, 100);
  note_with_state(100, 150);
  note_with_state(150, 250);
  EXPECT_THAT(rest_of(0, 250), IsEmpty());
  searched(0, 120);
  EXPECT_THAT(rest_of(80, 250), ElementsAre(Range{115, 125})) << "inspected to the middle of one";
  searched(80, 250);
  note_with_state(250, 300);
  EXPECT_THAT(rest_of(200, 300), IsEmpty());
}

TEST_F(JoinedFindings, LeaveSeamsIfTheStateIsNotTheStreams) {
  note_with_state(0, 0);
  note_with_state(0, 100);
  note_with_state(100, 200, false);
  note_with_state(200, 300);
  EXPECT_THAT(rest_of(0, 300), ElementsAre(Range{95, 105})) << "the third continues the second";
  note(300, 400);  // without state
  note_with_state(400, 500);
  EXPECT_THAT(rest_of(300, 500), ElementsAre(Range{395, 405}));
}

//     0       100   110      200
//     |--------| lost |-------|         the digits repeat: the same bytes precede the gap and its end
TEST_F(JoinedFindings, LeaveGapsWhoseStateEqualsTheBytesBefore) {
  note_with_state(0, 0);
  note_with_state(0, 100);
  note_with_state(110, 200);
  EXPECT_THAT(rest_of(0, 200), ElementsAre(Range{95, 115}));
}

/// A literal of six bytes may begin five bytes before a seam, where no parts of it were searched for.
TEST_F(JoinedFindings, LeaveSeamsNearTheStartOfJoinedBytes) {
  note_with_state(0, 0);
  note_with_state(0, 100, true, false);
  note_with_state(100, 104);
  note_with_state(104, 105);
  note_with_state(105, 200);
  EXPECT_THAT(rest_of(110, 200), IsEmpty());
  searched(0, 102);
  EXPECT_THAT(rest_of(60, 200), ElementsAre(Range{97, 109})) << "at 104 they are four bytes long, at 105 five";
}

//     0       100      200
//     |--------|--------|
//         |-x-|                          other bytes for some of it
TEST_F(JoinedFindings, LeaveSeamsOfBytesThatMayHaveChanged) {
  note_with_state(0, 0);
  note_with_state(0, 100);
  note_with_state(100, 200);
  note_with_state(90, 99);
  searched(0, 100);
  EXPECT_THAT(rest_of(60, 200), ElementsAre(Range{95, 105}));
  note_with_state(200, 300);
  EXPECT_THAT(rest_of(150, 300), ElementsAre(Range{195, 205}));
  note_with_state(300, 400);
  EXPECT_THAT(rest_of(250, 400), IsEmpty());
}

// --- Inspected bytes -----------------------------------------------------------------------------------------------

TEST_F(StreamFindingsTest, LeaveOnlyNewBytesOfAStreamThatWasInspected) {
  searched(0, 100, {{7, 100}});
  EXPECT_THAT(rest_of(0, 160), ElementsAre(Range{95, 160}));
  EXPECT_THAT(literals_, ElementsAre(7));
  searched(0, 160, {{8, 160}});
  EXPECT_THAT(rest_of(20, 200), ElementsAre(Range{155, 200}));
  EXPECT_THAT(literals_, UnorderedElementsAre(7, 8));
  EXPECT_THAT(rest_of(110, 200), ElementsAre(Range{155, 200}));
  EXPECT_THAT(literals_, ElementsAre(8));
}

TEST_F(StreamFindingsTest, LeaveNothingOfAHoleThatWasFilled) {
  searched(0, 100);
  searched(200, 300, {{9, 300}});
  EXPECT_THAT(rest_of(0, 300), ElementsAre(Range{95, 205}));
  searched(0, 300);
  EXPECT_THAT(rest_of(0, 300), IsEmpty());
  EXPECT_THAT(literals_, ElementsAre(9));
}

/// Ranges are only joined if no literal can cross the seam.
TEST_F(StreamFindingsTest, LeaveTheSeamOfSeparatelyInspectedBytes) {
  searched(0, 100);
  searched(100, 200);
  EXPECT_THAT(rest_of(0, 200), ElementsAre(Range{95, 105}));
  searched(197, 300);
  EXPECT_THAT(rest_of(150, 300), ElementsAre(Range{192, 202}));
  searched(290, 400);
  EXPECT_THAT(rest_of(250, 400), IsEmpty());
}

TEST_F(StreamFindingsTest, KnowTheLastPositionOfALiteral) {
  searched(0, 100, {{7, 100}});
  searched(50, 200, {{7, 200}});
  EXPECT_THAT(rest_of(150, 250), ElementsAre(Range{195, 250}));
  EXPECT_THAT(literals_, ElementsAre(7));
  searched(300, 350, {{7, 350}});
  searched(0, 50, {{7, 50}});
  rest_of(320, 350);
  EXPECT_THAT(literals_, ElementsAre(7));
}

TEST_F(StreamFindingsTest, ForgetBytesWhoseLiteralsDoNotFit) {
  std::vector<Found> found;
  for (std::uint32_t i = 0; i < StreamFindings::Known::kMostLiterals; ++i) found.push_back({i, 100});
  searched(0, 100, found);
  EXPECT_THAT(rest_of(0, 100), IsEmpty());
  searched(50, 200, {{1000, 200}});
  EXPECT_THAT(rest_of(50, 300), ElementsAre(Range{50, 105}, Range{195, 300}));
  EXPECT_THAT(literals_, ElementsAre(1000));
}

TEST_F(StreamFindingsTest, KnowNothingOfBytesWithTooManyLiterals) {
  std::vector<Found> found;
  for (std::uint32_t i = 0; i <= StreamFindings::Known::kMostLiterals; ++i) found.push_back({i, 100});
  searched(0, 100, found);
  EXPECT_THAT(rest_of(0, 100), ElementsAre(Range{0, 100}));
}

TEST_F(StreamFindingsTest, NoteSegmentsOfAStreamThatWasInspectedBefore) {
  searched(0, 100);
  note(100, 200);  // the first noted packet: others may have come before
  EXPECT_THAT(rest_of(0, 200), ElementsAre(Range{95, 200}));
  note(200, 300, {3});
  EXPECT_THAT(rest_of(0, 300), ElementsAre(Range{95, 205}));
  EXPECT_THAT(literals_, ElementsAre(3));
}

// --- The cache -----------------------------------------------------------------------------------------------------

TEST_F(StreamFindingsTest, AreSeparateForEachFlowAndDirection) {
  note(0, 0);
  note(0, 100);
  StreamFindings::Known known;
  findings_.look_up(flow_, Direction::to_client, 0, 100, kReach, known);
  EXPECT_EQ(known.rest_count, 1U);
  for (std::uint64_t id = 1; id <= 200; ++id) {  // one of them replaces the entry
    stack::Flow other;
    other.id = id;
    findings_.note(other, Direction::to_server, {0, 0, 0, true}, {});
  }
  EXPECT_THAT(rest_of(0, 100), ElementsAre(Range{0, 100}));
  note(100, 200);
  EXPECT_THAT(rest_of(100, 200), ElementsAre(Range{100, 200}));
}

TEST(StreamFindings, KnowNothingWithoutMemory) {
#ifdef PENSTOCK_SANITIZED
  GTEST_SKIP() << "the sanitizer ends a process that asks for so much";
#endif
  StreamFindings findings{40};  // more than the address space
  const stack::Flow flow;
  StreamFindings::Known known;
  findings.note(flow, Direction::to_server, {0, 0, 0, true}, {});
  findings.note(flow, Direction::to_server, {0, 100, 100, true}, {});
  findings.searched(flow, Direction::to_server, 0, 100, kReach, {});
  findings.look_up(flow, Direction::to_server, 0, 100, kReach, known);
  EXPECT_THAT(known.rest[0], (Range{0, 100}));
}

/// The bytes of a stream; each has the number of a literal of one to six bytes that begins there, or none. Windows are
/// inspected at random, sliding over the stream and filling holes; payloads are noted at random. Each literal in a
/// window must be known or in the ranges left to scan.
TEST(StreamFindings, LeaveNoLiteralUnseen) {
  std::mt19937 random(3);
  for (int round = 0; round < 2000; ++round) {
    struct Placed {
      std::uint64_t begin, end;
      std::uint32_t literal;
    };
    std::vector<Placed> placed;
    const unsigned kinds = 1 + static_cast<unsigned>(random() % 40);
    for (int i = 0; i < 40; ++i) {
      const std::uint64_t begin = random() % 990;
      const auto literal = static_cast<std::uint32_t>(random() % kinds);
      placed.push_back({begin, begin + 1 + literal % 6, literal});
    }
    const auto in = [&](std::uint64_t begin, std::uint64_t end) {
      std::set<std::uint32_t> found;
      for (const Placed& one : placed) {
        if (one.begin >= begin && one.end <= end) found.insert(one.literal);
      }
      return found;
    };
    StreamFindings findings{4};
    stack::Flow flow;
    const bool notes = random() % 2 == 0;
    std::uint64_t highest = 0;
    for (int step = 0; step < 30; ++step) {
      const std::uint64_t begin = random() % 900;
      const std::uint64_t end = begin + 1 + random() % 100;
      if (notes && random() % 3 != 0) {
        highest = std::max(highest, end);
        const std::set<std::uint32_t> there = in(begin, end);
        const std::vector<std::uint32_t> literals(there.begin(), there.end());
        const bool known = random() % 4 != 0;
        findings.note(flow, Direction::to_server, {begin, end, highest, known},
                      known ? std::span<const std::uint32_t>(literals) : std::span<const std::uint32_t>());
        continue;
      }
      StreamFindings::Known known;
      findings.look_up(flow, Direction::to_server, begin, end, kReach, known);
      std::set<std::uint32_t> seen;
      std::vector<Found> found;
      for (std::size_t i = 0; i < known.literal_count; ++i) seen.insert(known.literals[i].literal);
      for (std::size_t i = 0; i < known.rest_count; ++i) {
        ASSERT_GE(known.rest[i].begin, begin);
        ASSERT_LE(known.rest[i].end, end);
        for (const std::uint32_t literal : in(known.rest[i].begin, known.rest[i].end)) {
          seen.insert(literal);
          found.push_back({literal, known.rest[i].end});
        }
      }
      for (const std::uint32_t literal : in(begin, end)) {
        ASSERT_TRUE(seen.contains(literal)) << round << " literal " << literal << " in " << begin << "-" << end;
      }
      findings.searched(flow, Direction::to_server, begin, end, kReach, found);
    }
  }
}

}  // namespace
}  // namespace penstock::nids
