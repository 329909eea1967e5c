// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Any fragments of one datagram, against the naive reassembly.
//
// Input: overlap policy; then for each fragment its offset in units of 8 bytes, its length, and whether there are more.

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "stack/ip_reassembly.h"
#include "stack/testing/naive_reassembly.h"

using namespace penstock;
using namespace penstock::stack;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  TrackerOptions options;
  constexpr std::array kPolicies{OverlapPolicy::first,     OverlapPolicy::last,    OverlapPolicy::bsd,
                                 OverlapPolicy::bsd_right, OverlapPolicy::windows, OverlapPolicy::solaris,
                                 OverlapPolicy::linux_host};
  options.fragment_policy = kPolicies[data[0] % kPolicies.size()];
  const bool as_linux = options.fragment_policy == OverlapPolicy::linux_host;
  options.every_version = (data[0] & 64) != 0;
  options.inline_streams = (data[0] & 128) != 0;
  options.fragment_memory = 1 << 16;
  TrackerCounters counters;
  IpReassembly reassembly(options, counters);
  std::vector<testing::NaiveFragment> fragments;
  testing::NaiveLinux linux_one;
  std::vector<std::uint8_t> room(IpReassembly::kMostBytes), header(20);
  header[0] = 0x45;
  for (std::size_t at = 1; at + 3 <= size && fragments.size() < 50; at += 3) {
    testing::NaiveFragment naive;
    naive.begin = data[at] % 32 * 8U;
    naive.data = std::string(data[at + 1] % 64, static_cast<char>('A' + fragments.size()));
    naive.more = data[at + 2] % 4 != 0;
    DecodedPacket packet;
    packet.ip_version = 4;
    packet.protocol = 17;
    IpFragment fragment;
    fragment.offset = naive.begin;
    fragment.more = naive.more;
    fragment.header = header;
    const std::vector<std::uint8_t> bytes(naive.data.begin(), naive.data.end());
    fragment.data = bytes;
    reassembly.add(fragment, packet);
    Bytes whole = reassembly.next(packet, room);
    if (options.every_version || options.inline_streams) {  // of these no naive one knows
      for (unsigned made = 0; !whole.empty(); ++made) {
        if (made == IpReassembly::kMostDatagrams || whole.size() < header.size()) std::abort();
        whole = reassembly.next(packet, room);
      }
      continue;
    }
    if (!naive.data.empty()) fragments.push_back(naive);
    if (as_linux && linux_one.ends_elsewhere(naive)) return 0;
    const auto expected =
        as_linux ? linux_one.add(naive) : testing::naive_reassembly(options.fragment_policy, fragments);
    if (expected.has_value() == whole.empty()) std::abort();
    if (!expected) continue;
    if (!std::equal(whole.begin() + 20, whole.end(), expected->begin(), expected->end(),
                    [](std::uint8_t a, char b) { return a == static_cast<std::uint8_t>(b); })) {
      std::abort();
    }
    fragments.clear();
  }
  return 0;
}
