// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "function/arrivals.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "packet/parse_core.h"
#include "packet/testing/packet_builder.h"

namespace penstock::function {
namespace {

using testing::Bytes;

struct Frame {
  explicit Frame(Bytes frame) : bytes(std::move(frame)) {
    descriptor.length = descriptor.wire_length = static_cast<std::uint32_t>(bytes.size());
    parse(view());
  }
  PacketView view() { return {bytes.data(), &descriptor}; }

  Bytes bytes;
  PacketDescriptor descriptor;
};

Frame udp(std::size_t payload) {
  return Frame(
      testing::packet().eth().ipv4("10.0.0.1", "192.0.2.1").udp(1000, 53).payload(std::string(payload, 7)).bytes());
}

/// As in a batch.
std::vector<PacketView> in_order(Frame& one, Frame& other) {
  std::vector<PacketView> packets{one.view(), other.view()};
  std::ranges::sort(packets, std::less<>(), &PacketView::packet);
  return packets;
}

Bytes bytes_of(PacketView packet) { return {packet.frame, packet.frame + packet.length()}; }

TEST(Arrivals, KnowsWhatFunctionsHaveWrittenOver) {
  Arrivals arrivals(64);
  Frame small = udp(10), large = udp(1400), other = udp(10);
  const Bytes before = large.bytes;
  arrivals.add(in_order(small, large));
  large.view().ethernet().source = {{2, 0, 0, 0, 0, 9}};
  large.view().ipv4().destination.set(0x0a000002);
  large.view().udp().destination_port.set(5353);
  large.descriptor.verdict = Verdict::drop(0);

  const auto arrived = arrivals.of(large.view());
  ASSERT_TRUE(arrived);
  EXPECT_EQ(bytes_of(*arrived), before);
  EXPECT_EQ(arrived->layout(), large.descriptor.layout);
  ASSERT_TRUE(arrivals.of(small.view()));
  EXPECT_EQ(bytes_of(*arrivals.of(small.view())), small.bytes);
  EXPECT_FALSE(arrivals.of(other.view())) << "of another burst";
  arrivals.forget();
  arrivals.add(std::vector{other.view()});
  EXPECT_FALSE(arrivals.of(large.view())) << "of an earlier burst";
  arrivals.forget();
  EXPECT_FALSE(arrivals.of(other.view()));
}

TEST(Arrivals, KnowsLinkHeadersWhateverFollowsThem) {
  Arrivals arrivals(64);
  Frame frame = udp(100), other = udp(100), raw = udp(100);
  raw.descriptor.link_type = LinkType::raw_ip;
  const MacAddress source = frame.view().ethernet().source;
  arrivals.add(std::vector{frame.view()});
  frame.view().ethernet().source = {{2, 0, 0, 0, 0, 9}};
  frame.descriptor.length -= 20;  // as after a tunnel
  ASSERT_NE(arrivals.link_header(frame.view()), nullptr);
  EXPECT_EQ(arrivals.link_header(frame.view())->source, source);
  EXPECT_EQ(arrivals.link_header(other.view()), nullptr) << "of another burst";
  arrivals.forget();
  arrivals.add(std::vector{raw.view()});
  EXPECT_EQ(arrivals.link_header(raw.view()), nullptr) << "its link has none";
}

/// Such as one that was held after a function had translated it.
TEST(Arrivals, KnowsOnlyTheLinkHeadersOfSome) {
  Arrivals arrivals(64);
  Frame frame = udp(100);
  arrivals.add(std::vector{frame.view()}, Arrivals::Part::link_header);
  EXPECT_NE(arrivals.link_header(frame.view()), nullptr);
  EXPECT_FALSE(arrivals.of(frame.view()));
}

/// What was in a tunnel must not go back to its other end outside of it.
TEST(Arrivals, DoesNotKnowPacketsThatBecameOthers) {
  Arrivals arrivals(64);
  Frame frame = udp(100);
  arrivals.add(std::vector{frame.view()});
  frame.descriptor.length -= 1;
  EXPECT_FALSE(arrivals.of(frame.view())) << "shorter";
  frame.descriptor.length += 1;
  frame.descriptor.layout.transport = ip_protocol::kTcp;
  EXPECT_FALSE(arrivals.of(frame.view())) << "of another protocol";
  frame.descriptor.layout.transport = ip_protocol::kUdp;
  EXPECT_TRUE(arrivals.of(frame.view()));
}

}  // namespace
}  // namespace penstock::function
