// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Arbitrary rules on arbitrary frames: rules that load are compiled with each matcher, and all matchers must give the
// same alerts. Frames are in memory of exactly their size.
//
// Input: rules, one per line, up to a zero byte; a byte of options; then frames: link type, time step (signed, in units
// of 1/8 s), length (two bytes, big-endian), bytes.

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "nids/scanner.h"

using namespace penstock;
using namespace penstock::nids;

namespace {

struct Frame {
  LinkType link_type;
  std::uint64_t timestamp_ns;
  std::span<const std::uint8_t> bytes;
};

std::vector<Frame> frames_of(std::span<const std::uint8_t> data) {
  constexpr std::size_t kHead = 4, kMost = 256;
  std::vector<Frame> frames;
  std::uint64_t now = 1'700'000'000'000'000'000;
  while (data.size() > kHead && frames.size() < kMost) {
    const std::size_t length = std::min<std::size_t>(std::size_t{data[2]} << 8 | data[3], data.size() - kHead);
    now += static_cast<std::uint64_t>(std::int64_t{static_cast<std::int8_t>(data[1])} * 125'000'000);
    frames.push_back({static_cast<LinkType>(data[0] % 8), now, data.subspan(kHead, length)});
    data = data.subspan(kHead + length);
  }
  return frames;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const std::size_t end = text.find('\0');
  constexpr std::size_t kMostText = 4096;
  if (end == std::string_view::npos || end > kMostText || end + 2 > size) return 0;
  auto rules = read_rules_text(text.substr(0, end), "fuzz.rules");
  if (!rules) std::abort();  // mistakes in rules are in `left_out`
  const std::uint8_t way = data[end + 1];
  const std::vector<Frame> frames = frames_of({data + end + 2, size - end - 2});

  test::ScanOptions options;
  options.tracker.stream_policy = static_cast<stack::OverlapPolicy>(way % 7);
  options.tracker.fragment_policy = static_cast<stack::OverlapPolicy>(way % 7);
  options.tracker.midstream = (way & 8) != 0;
  options.tracker.inline_streams = (way & 16) != 0;
  options.tracker.verify_checksums = (way & 32) != 0;
  options.tracker.async_oneside = (way & 64) != 0;
  options.inspector.drops = (way & 128) != 0;
  // Little memory, because it is mapped for each input, and so that it is soon full.
  options.tracker.flow_memory = 256 << 10;
  options.tracker.stream_memory = 1 << 20;
  options.tracker.fragment_memory = 256 << 10;
  options.host_bytes = 64 << 10;
  test::AlertCounts counts;
  for (const MatcherKind matcher : {MatcherKind::hyperscan, MatcherKind::aho_corasick, MatcherKind::hashed_filter}) {
    options.detection.matcher = matcher;
    auto detection = Detection::compile(*rules, options.detection);
    if (!detection) return 0;  // this matcher cannot compile the rules
    test::Scanner scanner(**detection, options);
    for (const Frame& frame : frames) scanner.frame(frame.bytes, frame.timestamp_ns, frame.link_type);
    scanner.finish();
    if (scanner.tracker().flows != scanner.tracker().flows_ended) std::abort();
    if (matcher == MatcherKind::hyperscan) {
      counts = scanner.counts();
    } else if (counts != scanner.counts()) {
      std::fputs("matchers differ\n", stderr);
      std::abort();
    }
  }
  return 0;
}
