// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// For tests that compare two ways of inspection: the traffic in this repository, and rules that match in it.

#pragma once

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <string>
#include <vector>

namespace penstock::nids::test {

/// Rules that match any traffic: short contents, streams, positions, and some that no content selects.
inline constexpr const char* kCommonRules =
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

/// In the order of their names, without those that runs of the examples have written.
inline std::vector<std::string> captures_below(const std::filesystem::path& folder) {
  std::vector<std::string> captures;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    const std::string name = entry.path().filename().string();
    if (entry.path().extension() == ".pcap" && !name.starts_with("out")) captures.push_back(entry.path().string());
  }
  std::ranges::sort(captures);
  return captures;
}

/// The captures in examples/ and tests/golden/ below this root.
inline std::vector<std::string> shipped_captures(const std::filesystem::path& root) {
  std::vector<std::string> captures = captures_below(root / "examples");
  std::ranges::move(captures_below(root / "tests/golden"), std::back_inserter(captures));
  return captures;
}

}  // namespace penstock::nids::test
