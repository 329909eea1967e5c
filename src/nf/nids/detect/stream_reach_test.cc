// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "nf/nids/detect/stream_reach.h"

#include <gtest/gtest.h>

#include "nf/nids/detect/testing/detection_bed.h"

namespace penstock::nids::testing {
namespace {

StreamReach whole_reach_of(const std::string& options) {
  const RuleSet set = rules_of("alert tcp any any -> any any (" + options + " sid:1;)");
  return stream_reach(set.rules.front().buffers.front().matches);
}

std::uint32_t reach_of(const std::string& options) {
  const StreamReach reach = whole_reach_of(options);
  EXPECT_FALSE(reach.from_start) << options;
  return reach.bytes;
}

TEST(StreamReach, IsTheLengthOfAMatchWithoutItsLastByte) {
  EXPECT_EQ(reach_of(R"(content:"a";)"), 0U);
  EXPECT_EQ(reach_of(R"(content:"attack";)"), 5U);
  EXPECT_EQ(reach_of(R"(content:"attack"; endswith;)"), 5U);
  EXPECT_EQ(reach_of(R"(content:"attack"; content:"dawn"; within:10;)"), 15U);
  EXPECT_EQ(reach_of(R"(content:"attack"; content:"dawn"; distance:4; within:10;)"), 19U);
  EXPECT_EQ(reach_of(R"(content:"attack"; content:"dawn"; distance:-20; within:15;)"), 25U);
  EXPECT_EQ(reach_of(R"(content:"attack"; content:!"dawn"; within:10;)"), 5U);
  EXPECT_EQ(reach_of(R"(content:"attack"; isdataat:100,relative;)"), 105U);
  EXPECT_EQ(reach_of(R"(content:"attack"; isdataat:!100,relative;)"), 5U);
  EXPECT_GE(reach_of(R"(content:"attack"; byte_test:4,>,9,6,relative;)"), 6U + 6 + 4 - 1);
  EXPECT_EQ(reach_of(R"(pcre:"/attack/";)"), 5U);
  EXPECT_EQ(reach_of(R"(pcre:"/^attack/m";)"), 6U);
  EXPECT_EQ(reach_of(R"(pcre:"/att.{1,9}ack/"; content:"dawn"; within:10;)"), 24U);
  // Positions that count from the stream's first byte are known anywhere in it.
  EXPECT_EQ(reach_of(R"(content:"attack"; offset:100;)"), 5U);
  EXPECT_EQ(reach_of(R"(content:"attack"; depth:100;)"), 5U);
  EXPECT_EQ(reach_of(R"(content:"attack"; startswith; content:"dawn"; within:10;)"), 15U);
}

TEST(StreamReach, IsAChunkIfUnbounded) {
  for (const char* const between :
       {R"(content:"dawn";)", R"(content:"dawn"; distance:1;)", R"(pcre:"/da.*wn/"; content:"dawn";)",
        R"(content:"dawn"; content:!"dusk";)", R"(byte_jump:1,0,relative; content:"dawn"; within:4;)"}) {
    EXPECT_EQ(reach_of(std::string(R"(content:"attack"; )") + between), kMostStreamReach) << between;
  }
  EXPECT_EQ(reach_of(R"(pcre:"/att.*ack/";)"), kMostStreamReach);
  EXPECT_EQ(reach_of(R"(pcre:"/attack/"; content:"dawn";)"), kMostStreamReach);
  EXPECT_EQ(reach_of(R"(content:"attack"; pcre:"/^dawn/R";)"), kMostStreamReach);
  EXPECT_EQ(reach_of(R"(content:"attack"; offset:1; content:"dawn";)"), kMostStreamReach);
  EXPECT_EQ(reach_of(R"(content:"attack"; depth:9; content:"dawn";)"), kMostStreamReach);
  EXPECT_EQ(reach_of(R"(content:"attack"; isdataat:100;)"), kMostStreamReach);
  EXPECT_EQ(reach_of(R"(content:"attack"; byte_test:1,>,9,0;)"), kMostStreamReach);
  EXPECT_EQ(reach_of(R"(content:"attack"; byte_jump:1,0,relative,from_beginning;)"), kMostStreamReach);
}

TEST(StreamReach, HasABound) {
  EXPECT_EQ(reach_of(R"(content:"attack"; content:"dawn"; within:5000;)"), kMostStreamReach);
  EXPECT_EQ(reach_of("content:\"" + std::string(2000, 'a') + "\";"), 1999U);
  // Contents are found whatever their length.
  EXPECT_EQ(reach_of("content:\"" + std::string(5000, 'a') + "\";"), 4999U);
  EXPECT_EQ(reach_of("content:\"" + std::string(2000, 'a') + "\"; content:\"" + std::string(2000, 'b') + "\";"), 4000U);
}

TEST(StreamReach, KnowsRulesThatCanOnlyBeTriedFromTheStart) {
  for (const char* const options :
       {R"(content:!"attack"; offset:1; content:"dawn";)", R"(content:"attack"; within:20;)",
        R"(byte_extract:1,0,x; content:"attack"; offset:x;)", R"(content:"attack"; isdataat:!100;)",
        R"(byte_test:1,>,9,0;)", R"(pcre:"/^attack/";)", R"(pcre:"/attack/A";)", R"(pcre:"/\Aattack|dawn/";)",
        R"(pcre:"/attack/R";)", R"(content:!"attack";)"}) {
    EXPECT_TRUE(whole_reach_of(options).from_start) << options;
  }
}

TEST(StreamReach, KnowsRulesWithPositionsInTheStream) {
  for (const char* const options :
       {R"(content:"a"; offset:3;)", R"(content:"a"; depth:3;)", R"(content:"a"; startswith;)",
        R"(content:"a"; isdataat:3;)", R"(content:"a"; byte_test:1,>,9,0;)",
        R"(content:"a"; byte_jump:1,0,relative,from_beginning;)"}) {
    EXPECT_TRUE(whole_reach_of(options).has_places) << options;
  }
  for (const char* const options : {R"(content:"a";)", R"(content:"a"; isdataat:3,relative;)", R"(pcre:"/ab/";)"}) {
    EXPECT_FALSE(whole_reach_of(options).has_places) << options;
  }
}

}  // namespace
}  // namespace penstock::nids::testing
