// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "nf/nids/detect/stream_findings.h"

#include <gmock/gmock.h>

namespace penstock::nids {
namespace {

using stack::Direction;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

class StreamFindingsTest : public ::testing::Test {
 protected:
  void note(std::uint64_t begin, std::uint64_t end, std::vector<std::uint32_t> literals = {}, bool known = true) {
    highest_ = std::max(highest_, end);
    findings_.note(flow_, Direction::to_server, {begin, end, highest_, known}, literals);
  }
  bool look_up(std::uint64_t begin, std::uint64_t end) {
    StreamFindings::Known known;
    if (!findings_.look_up(flow_, Direction::to_server, begin, end, known)) return false;
    literals_.assign(known.literals.begin(), known.literals.begin() + known.literal_count);
    seams_.assign(known.seams.begin(), known.seams.begin() + known.seam_count);
    return true;
  }

  StreamFindings findings_{4};
  stack::Flow flow_;
  std::uint64_t highest_ = 0;
  std::vector<std::uint32_t> literals_;
  std::vector<std::uint64_t> seams_;
};

TEST_F(StreamFindingsTest, KnowTheSeamsBetweenSegments) {
  note(0, 0);  // the handshake
  note(0, 100, {7});
  note(100, 250, {8, 9});
  ASSERT_TRUE(look_up(0, 250));
  EXPECT_THAT(seams_, ElementsAre(100));
  EXPECT_THAT(literals_, ElementsAre(7, 8, 9));
  ASSERT_TRUE(look_up(100, 250));
  EXPECT_THAT(seams_, IsEmpty());
  EXPECT_THAT(literals_, ElementsAre(8, 9));
}

TEST_F(StreamFindingsTest, KnowNothingOfWhatCameBeforeTheFirstNote) {
  note(0, 100);
  EXPECT_FALSE(look_up(0, 100));
  note(50, 150);  // its first half may have lost to an earlier packet
  EXPECT_FALSE(look_up(50, 150));
  EXPECT_TRUE(look_up(100, 150));
}

TEST_F(StreamFindingsTest, KnowNothingOfSegmentsThatWereNotSearched) {
  note(0, 0);
  note(0, 100, {}, false);
  note(50, 200);
  EXPECT_FALSE(look_up(0, 200));
  EXPECT_FALSE(look_up(50, 200));
  EXPECT_TRUE(look_up(100, 200));
}

TEST_F(StreamFindingsTest, KnowNothingOfGaps) {
  note(0, 0);
  note(0, 100);
  note(120, 200);
  EXPECT_FALSE(look_up(0, 200));
  EXPECT_TRUE(look_up(0, 100));
  EXPECT_TRUE(look_up(120, 200));
  note(90, 130);
  ASSERT_TRUE(look_up(0, 200));
  EXPECT_THAT(seams_, ElementsAre(90, 100, 120, 130));
}

TEST_F(StreamFindingsTest, ForgetTheOldestWhereThereIsNoRoom) {
  note(0, 0);
  for (std::uint64_t at = 0; at < 10'000; at += 100) note(at, at + 100);
  EXPECT_FALSE(look_up(0, 100));
  EXPECT_FALSE(look_up(8000, 10'000));
  EXPECT_TRUE(look_up(9700, 10'000));
}

TEST_F(StreamFindingsTest, ForgetAllWhereLiteralsHaveNoRoom) {
  note(0, 0);
  note(0, 100, {1, 2, 3, 4, 5, 6, 7});
  note(100, 200, {1, 2, 3, 4, 5, 6, 7});
  EXPECT_FALSE(look_up(0, 200));
  note(200, 300, {5});
  ASSERT_TRUE(look_up(200, 300));
  EXPECT_THAT(literals_, ElementsAre(5));
}

TEST_F(StreamFindingsTest, OfOtherDirectionsAndFlowsAreOthers) {
  note(0, 0);
  note(0, 100);
  StreamFindings::Known known;
  EXPECT_FALSE(findings_.look_up(flow_, Direction::to_client, 0, 100, known));
  for (std::uint64_t id = 1; id <= 200; ++id) {  // one of them takes its place
    stack::Flow other;
    other.id = id;
    findings_.note(other, Direction::to_server, {0, 0, 0, true}, {});
  }
  EXPECT_FALSE(look_up(0, 100));
  note(100, 200);
  EXPECT_FALSE(look_up(100, 200));
}

TEST(StreamFindings, KnowNothingWhereThereIsNoMemoryForThem) {
#if defined(__SANITIZE_ADDRESS__)
  GTEST_SKIP() << "the sanitizer ends a process that asks for so much";
#endif
  StreamFindings findings{40};  // more than processors have addresses for
  const stack::Flow flow;
  StreamFindings::Known known;
  findings.note(flow, Direction::to_server, {0, 0, 0, true}, {});
  findings.note(flow, Direction::to_server, {0, 100, 100, true}, {});
  EXPECT_FALSE(findings.look_up(flow, Direction::to_server, 0, 100, known));
}

}  // namespace
}  // namespace penstock::nids
