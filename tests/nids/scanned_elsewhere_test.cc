// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Where a GPU has told which literals are in a packet, the alerts are those of a scan on the host.

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "nids/scanner.h"

namespace penstock::nids::test {
namespace {

namespace fs = std::filesystem;

/// Rules that any traffic matches: short contents, streams, positions, and some that no content selects.
constexpr const char* kCommonRules =
    "alert tcp any any -> any any (msg:\"a\"; content:\"GET \"; sid:1;)\n"
    "alert tcp-pkt any any -> any any (msg:\"b\"; content:\"|00 00|\"; content:\"|00|\"; distance:1; sid:2;)\n"
    "alert udp any any -> any any (msg:\"c\"; content:\"|00 01|\"; offset:2; depth:8; sid:3;)\n"
    "alert ip any any -> any any (msg:\"d\"; content:\"e\"; nocase; dsize:>100; sid:4;)\n"
    "alert tcp any any -> any any (msg:\"e\"; content:\"0a|0a|1\"; sid:5;)\n"
    "alert tcp any any -> any any (msg:\"f\"; flow:established,to_client; content:\"|0d 0a 0d 0a|\"; sid:6;)\n"
    "alert icmp any any -> any any (msg:\"g\"; itype:8; content:\"abc\"; sid:7;)\n"
    "alert tcp any any -> any any (msg:\"h\"; flags:S; sid:8;)\n"
    "alert tcp any any -> any any (msg:\"i\"; content:\"HTTP/1.1 200 OK|0d 0a|Server\"; pcre:\"/Date: [A-Z]/R\"; "
    "sid:9;)\n";

std::vector<std::string> captures_below(const fs::path& folder) {
  std::vector<std::string> captures;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    const std::string name = entry.path().filename().string();
    if (entry.path().extension() == ".pcap" && !name.starts_with("out")) captures.push_back(entry.path().string());
  }
  std::ranges::sort(captures);
  return captures;
}

void expect_the_same(const Detection& detection, const std::string& capture, ScanOptions options = {}) {
  Scanner here(detection, options);
  options.scanned_elsewhere = true;
  Scanner elsewhere(detection, options);
  ASSERT_EQ(here.capture(capture), elsewhere.capture(capture));
  EXPECT_EQ(here.counts(), elsewhere.counts()) << capture;
}

TEST(ScannedElsewhere, GivesTheSameAlertsOnShippedCaptures) {
  const auto detection = compiled(rules_of(kCommonRules));
  for (const char* const below : {"examples", "tests/golden"}) {
    for (const std::string& capture : captures_below(fs::path(PENSTOCK_SOURCE_DIR) / below)) {
      expect_the_same(*detection, capture);
    }
  }
}

TEST(ScannedElsewhere, GivesTheSameAlertsOnTheCorpus) {
  if (corpus().empty()) GTEST_SKIP() << "no corpus";
  const auto detection = compiled(rules_of(kCommonRules));
  for (const std::string& capture : captures_below(fs::path(corpus()) / "captures")) {
    expect_the_same(*detection, capture);
  }
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
}

}  // namespace
}  // namespace penstock::nids::test
