// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "ring/record.h"

#include <gtest/gtest.h>

#include <vector>

#include "packet/parse_core.h"
#include "packet/testing/random_frames.h"

namespace penstock::ring {
namespace {

using penstock::testing::Bytes;
using penstock::testing::Frame;
using penstock::testing::RandomFrames;

const std::vector<FieldSet>& sets() {
  static const std::vector<FieldSet> kSets{
      {Field::eth_dst, Field::eth_src, Field::ipv4_ttl, Field::ipv4_checksum, Field::ipv6_hop_limit},
      {Field::ipv4_src, Field::ipv4_dst, Field::l4_src_port, Field::l4_dst_port, Field::l4_checksum, Field::tcp_seq},
      {Field::mark, Field::timestamp, Field::ipv4_tos, Field::ipv6_src, Field::ipv6_dst, Field::icmp_rest},
  };
  return kSets;
}

/// Sequences of similar packets, as in flows, so that the located fields are reused for the next packet.
TEST(RecordScatter, MatchesScatterAndUndoesIt) {
  RandomFrames random(11);
  std::size_t changed = 0;
  for (const FieldSet& fields : sets()) {
    const auto layout = record_layout(fields);
    ASSERT_TRUE(layout);
    RecordScatter fast(*layout);
    for (int n = 0; n < 3000; ++n) {
      const Frame frame = random.frame();
      for (std::uint32_t alike = random.below(3); alike < 3; ++alike) {
        PacketDescriptor original;
        original.length = static_cast<std::uint32_t>(frame.bytes.size());
        original.wire_length = frame.wire_length;
        original.link_type = frame.link_type;
        original.mark = random.below(1000);
        original.timestamp_ns = random.below(1000);
        Bytes there = frame.bytes;
        parse({there.data(), &original});
        std::vector<std::uint8_t> record(layout->bytes);
        gather(*layout, {there.data(), &original}, record.data());
        for (std::size_t b = sizeof(RecordHeader); b < record.size(); ++b) {
          record[b] = static_cast<std::uint8_t>(record[b] + 1 + random.below(9));
        }

        PacketDescriptor slow_packet = original;
        PacketDescriptor fast_packet = original;
        slow_packet.layout = fast_packet.layout = {};  // a side that did not parse
        Bytes by_slow = frame.bytes;
        Bytes by_fast = frame.bytes;
        take_layout(record.data(), {by_slow.data(), &slow_packet});
        scatter(*layout, record.data(), {by_slow.data(), &slow_packet});
        fast(record.data(), {by_fast.data(), &fast_packet});
        ASSERT_EQ(by_fast, by_slow) << to_string(fields) << ", frame " << n;
        ASSERT_EQ(fast_packet.mark, slow_packet.mark);
        ASSERT_EQ(fast_packet.timestamp_ns, slow_packet.timestamp_ns);
        ASSERT_EQ(fast_packet.layout.transport_offset, slow_packet.layout.transport_offset);
        changed += by_fast != frame.bytes ? 1 : 0;

        PacketDescriptor exchanged = original;
        Bytes by_exchange = frame.bytes;
        const auto sent = record;
        fast.exchange(record.data(), {by_exchange.data(), &exchanged});
        ASSERT_EQ(by_exchange, by_slow) << to_string(fields) << ", frame " << n;
        ASSERT_EQ(exchanged.mark, slow_packet.mark);
        ASSERT_EQ(exchanged.timestamp_ns, slow_packet.timestamp_ns);
        fast.exchange(record.data(), {by_exchange.data(), &exchanged});
        ASSERT_EQ(by_exchange, frame.bytes) << to_string(fields) << ", frame " << n;
        ASSERT_EQ(exchanged.mark, original.mark);
        ASSERT_EQ(exchanged.timestamp_ns, original.timestamp_ns);
        ASSERT_EQ(record, sent);
      }
    }
  }
  EXPECT_GT(changed, 9000U);
}

}  // namespace
}  // namespace penstock::ring
