// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "control/packet_stream.h"

#include <gtest/gtest.h>

#include <vector>

#include "control/packet_filter.h"
#include "packet/testing/packet_builder.h"

namespace penstock::control {
namespace {

using testing::Bytes;
using testing::packet;

TEST(PacketStream, CountsWhatDoesNotFitAsLost) {
  PacketStream stream;
  std::vector<std::uint8_t> bytes(60'000, 7);
  PacketDescriptor descriptor;
  descriptor.length = static_cast<std::uint32_t>(bytes.size());
  const auto fill = [&](int frames) {
    for (int i = 0; i < frames; ++i) stream.add({1, {bytes.data(), &descriptor}});
  };
  fill(100);
  const PacketStream::Counts counts = stream.counts();
  EXPECT_EQ(counts.added + counts.lost, 100U);
  EXPECT_EQ(counts.added, PacketStream::kMostBytes / (60'000 + 256));
  EXPECT_EQ(stream.take(10).size(), 10U);
  fill(12);
  EXPECT_EQ(stream.counts().added, counts.added + 10) << "there is room again";
  stream.lose(5);
  EXPECT_EQ(stream.counts().lost, counts.lost + 2 + 5);
  const auto rest = stream.take(1000);
  EXPECT_EQ(rest.size(), counts.added);
  EXPECT_EQ(std::get<CapturedFrame>(rest.front()).bytes, bytes);
  EXPECT_TRUE(stream.take(1).empty());
}

bool matches(const std::string& expression, Bytes frame, LinkType link = LinkType::ethernet) {
  const auto filter = PacketFilter::compile(expression);
  EXPECT_TRUE(filter) << to_string(filter.error());
  PacketDescriptor descriptor;
  descriptor.length = descriptor.wire_length = static_cast<std::uint32_t>(frame.size());
  descriptor.link_type = link;
  return filter && (*filter)({frame.data(), &descriptor});
}

TEST(PacketFilter, ChoosesByAnExpressionOfLibpcap) {
  const Bytes udp = packet().eth().ipv4("10.0.0.1", "10.0.0.2").udp(1, 53).bytes();
  EXPECT_TRUE(matches("udp port 53", udp));
  EXPECT_FALSE(matches("udp port 54", udp));
  EXPECT_TRUE(matches("udp port 53", packet().ipv4("10.0.0.1", "10.0.0.2").udp(1, 53).bytes(), LinkType::raw_ip));
  EXPECT_FALSE(matches("ether host 02:00:00:00:00:02", Bytes(60, 0x45), LinkType::raw_ip)) << "it has no MACs";
}

TEST(PacketFilter, RefusesOtherTexts) { EXPECT_FALSE(PacketFilter::compile("udp port")); }

}  // namespace
}  // namespace penstock::control
