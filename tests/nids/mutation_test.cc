// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Real captures, damaged: bytes changed; frames cut, repeated, swapped, moved to other flows; times that jump. Nothing
// may crash (the sanitizer builds run this too), every flow that begins must end, and all matchers must find the same.

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "nids/scanner.h"
#include "property/corpus_packets.h"

namespace penstock::nids::test {
namespace {

struct Damaged {
  std::vector<std::uint8_t> bytes;
  std::uint64_t timestamp_ns;
  LinkType link_type;
};

class Damage {
 public:
  explicit Damage(std::uint32_t seed) : random_(seed) {}

  std::vector<Damaged> of(const std::vector<Damaged>& frames) {
    std::vector<Damaged> made;
    for (const Damaged& frame : frames) {
      Damaged now = frame;
      if (one_in(4)) change(now.bytes);
      if (one_in(20) && !now.bytes.empty()) now.bytes.resize(below(now.bytes.size()));
      if (one_in(30)) now.timestamp_ns += below(1'200'000'000'000) - 600'000'000'000;
      if (one_in(25)) made.push_back(now);
      if (one_in(25) && !made.empty()) std::swap(now, made[below(made.size())]);
      if (!one_in(40)) made.push_back(std::move(now));
    }
    return made;
  }

 private:
  std::uint64_t below(std::uint64_t bound) { return random_() % bound; }
  bool one_in(std::uint64_t times) { return below(times) == 0; }
  void change(std::vector<std::uint8_t>& bytes) {
    if (bytes.empty()) return;
    for (std::uint64_t n = 1 + below(4); n > 0; --n) {
      // Mostly in the headers.
      std::uint8_t& byte = bytes[one_in(4) ? below(bytes.size()) : below(std::min<std::size_t>(bytes.size(), 80))];
      byte = one_in(2) ? static_cast<std::uint8_t>(byte ^ 1U << below(8)) : static_cast<std::uint8_t>(random_());
    }
  }

  std::mt19937_64 random_;
};

TEST(Mutation, DamagedCapturesBreakNothingAndAllMatchersFindTheSame) {
  const std::string folder = corpus();
  if (folder.empty()) GTEST_SKIP() << "no corpus: set PENSTOCK_CORPUS to the folder of test data";
  RuleFiles files;
  files.rules = {folder + "/ids/mix/payload-147.rules", folder + "/ids/generated/test.rules"};
  auto rules = read_rules(files);
  ASSERT_TRUE(rules);
  std::vector<std::unique_ptr<const Detection>> detections;
  for (const MatcherKind matcher : {MatcherKind::hyperscan, MatcherKind::aho_corasick, MatcherKind::hashed_filter}) {
    detections.push_back(compiled(*rules, {.matcher = matcher}));
  }
  std::uint32_t seed = 0;
  std::uint64_t alerts = 0;
  std::vector<Damaged> mixed;  // from several captures, so that flows of one also occur in others
  const auto scan_mixed = [&] {
    const std::vector<Damaged> damaged = Damage(++seed).of(mixed);
    mixed.clear();
    ScanOptions options;
    options.tracker.stream_policy = static_cast<stack::OverlapPolicy>(seed % 7);
    options.tracker.fragment_policy = static_cast<stack::OverlapPolicy>(seed % 7);
    options.tracker.midstream = seed % 2 == 0;
    options.tracker.inline_streams = seed % 3 == 0;
    options.tracker.verify_checksums = seed % 5 == 0;
    options.inspector.drops = seed % 3 == 0;
    AlertCounts counts;
    for (const auto& detection : detections) {
      Scanner scanner(*detection, options);
      for (const Damaged& frame : damaged) scanner.frame(frame.bytes, frame.timestamp_ns, frame.link_type);
      scanner.finish();
      EXPECT_EQ(scanner.tracker().flows, scanner.tracker().flows_ended) << "seed " << seed;
      if (detection == detections.front()) {
        counts = scanner.counts();
      } else {
        EXPECT_EQ(scanner.counts(), counts) << "seed " << seed;
      }
    }
    for (const auto& [sid, count] : counts) alerts += count;
  };
  for (const std::string& file : property::corpus_captures()) {
    port::ReadControl control;
    auto captures = port::CaptureSequence::open({file}, control);
    if (!captures) continue;
    port::CapturedFrame frame;
    for (int n = 0; n < 100 && captures->next(frame); ++n) {
      mixed.push_back({{frame.bytes.begin(), frame.bytes.end()}, frame.timestamp_ns, frame.link_type});
    }
    if (mixed.size() > 1000) scan_mixed();
  }
  scan_mixed();
  EXPECT_GT(alerts, 0U);
}

}  // namespace
}  // namespace penstock::nids::test
