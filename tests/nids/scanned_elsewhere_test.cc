// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// If a GPU reports which literals are in a packet, alerts equal those of a scan on the host.

#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "base/testing/rounds.h"
#include "nids/common_traffic.h"
#include "nids/scanner.h"

namespace penstock::nids::test {
namespace {

namespace fs = std::filesystem;

std::uint64_t seams_known = 0;  // over all tests

void expect_the_same(const Detection& detection, const std::string& capture, ScanOptions options = {}) {
  Scanner here(detection, options);
  options.scanned_elsewhere = true;
  Scanner elsewhere(detection, options);
  const bool opened = here.capture(capture);
  ASSERT_EQ(elsewhere.capture(capture), opened);
  EXPECT_EQ(here.counts(), elsewhere.counts()) << capture;
  options.flow_states = true;
  Scanner with_states(detection, options);
  ASSERT_EQ(with_states.capture(capture), opened);
  EXPECT_EQ(here.counts(), with_states.counts()) << capture << ", with the state of flows";
  seams_known += with_states.counters().seams_known;
}

TEST(ScannedElsewhere, GivesTheSameAlertsOnShippedCaptures) {
  const auto detection = compiled(rules_of(kCommonRules));
  for (const std::string& capture : shipped_captures(PENSTOCK_SOURCE_DIR)) expect_the_same(*detection, capture);
}

TEST(ScannedElsewhere, GivesTheSameAlertsWithWholeLiterals) {
  DetectionOptions options;
  options.most_pattern_bytes = 255;
  const auto usual = compiled(rules_of(kCommonRules));
  const auto whole = compiled(rules_of(kCommonRules), options);
  ScanOptions by_whole;
  by_whole.scanned_elsewhere = by_whole.whole_literals = true;
  for (const std::string& capture : shipped_captures(PENSTOCK_SOURCE_DIR)) {
    Scanner here(*usual, {});
    Scanner elsewhere(*whole, by_whole);
    ASSERT_EQ(elsewhere.capture(capture), here.capture(capture));
    EXPECT_EQ(here.counts(), elsewhere.counts()) << capture;
  }
}

TEST(ScannedElsewhere, GivesTheSameAlertsOnTheCorpus) {
  if (corpus().empty()) GTEST_SKIP() << "no corpus";
  const auto detection = compiled(rules_of(kCommonRules));
  const auto captures = captures_below(fs::path(corpus()) / "captures");
  for (std::size_t i = 0; i < captures.size(); i += penstock::testing::stride())
    expect_the_same(*detection, captures[i]);
  for (const char* const of : {"ids/a", "ids/b", "ids/d"}) {
    for (const auto& entry : fs::directory_iterator(fs::path(corpus()) / of)) {
      auto read = read_rules({{(entry.path() / "test.rules").string()}, "", "", "", default_variables()});
      ASSERT_TRUE(read);
      const auto own = compiled(std::move(*read));
      ScanOptions inline_streams;
      inline_streams.tracker.inline_streams = inline_streams.inspector.drops = true;
      expect_the_same(*own, (entry.path() / "in.pcap").string());
      expect_the_same(*own, (entry.path() / "in.pcap").string(), inline_streams);
    }
  }
  EXPECT_GT(seams_known, 100U / penstock::testing::stride());
}

}  // namespace
}  // namespace penstock::nids::test
