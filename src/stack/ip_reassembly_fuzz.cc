// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Any fragments of one datagram, against the naive reassembly.
//
// Input: overlap policy; then for each fragment its offset in units of 8 bytes, its length, and whether there are more.

#include <algorithm>
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
  options.fragment_policy = static_cast<OverlapPolicy>(data[0] % 7);
  options.fragment_memory = 1 << 16;
  TrackerCounters counters;
  IpReassembly reassembly(options, counters);
  std::vector<testing::NaiveFragment> fragments;
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
    const Bytes whole = reassembly.add(fragment, packet, room);
    if (!naive.data.empty()) fragments.push_back(naive);
    const auto expected = testing::naive_reassembly(options.fragment_policy, fragments);
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
