// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "nf/nids/flow_state_stage.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "packet/testing/packet_builder.h"

namespace penstock::nids {
namespace {

using penstock::testing::packet;
using Frame = std::vector<std::uint8_t>;

constexpr std::uint8_t kAck = TcpHeader::kAck;

Frame segment(std::uint16_t port, std::uint32_t sequence, std::string_view payload, std::uint8_t flags = kAck) {
  Frame frame = packet().eth().ipv4("10.0.0.1", "192.0.2.1").tcp(port, 80).payload(payload).padded_to(60).bytes();
  auto& header = *reinterpret_cast<TcpHeader*>(frame.data() + 34);
  header.sequence.set(sequence);
  header.flags = flags;
  return frame;
}

class FlowStates : public ::testing::Test {
 protected:
  /// The state sent with each frame, as text; "-": none.
  std::vector<std::string> states_of(std::vector<Frame> frames) {
    std::vector<PacketDescriptor> descriptors(frames.size());
    std::vector<PacketView> packets;
    std::vector<FlowState> states(frames.size());
    std::vector<std::byte*> places;
    for (std::size_t i = 0; i < frames.size(); ++i) {
      descriptors[i].length = descriptors[i].wire_length = static_cast<std::uint32_t>(frames[i].size());
      packets.push_back({frames[i].data(), &descriptors[i]});
      states[i].append(frames[i]);  // to be overwritten
      places.push_back(reinterpret_cast<std::byte*>(&states[i]));
    }
    stage_.fill(packets, places);
    std::vector<std::string> texts;
    for (const FlowState& state : states) {
      const std::uint64_t bytes = state.bytes();
      texts.emplace_back(reinterpret_cast<const char*>(&bytes), state.count());
      if (state.count() == 0) texts.back() = "-";
    }
    return texts;
  }
  using Texts = std::vector<std::string>;

  FlowStateStage stage_{10};
};

//   SYN 99 ─▶ "GET /in" 100 ─▶ "dex" 107 ─▶ ACK ─▶ ".html" 110
TEST_F(FlowStates, AreTheBytesBeforeASegmentThatContinuesItsStream) {
  EXPECT_EQ(states_of({segment(1000, 99, "", TcpHeader::kSyn), segment(1000, 100, "GET /in"), segment(1000, 107, "dex"),
                       segment(1000, 110, ""), segment(1000, 110, ".html")}),
            (Texts{"-", "-", "GET /in", "-", " /index"}));
  EXPECT_EQ(states_of({segment(1000, 115, "more")}), Texts{"ex.html"}) << "a batch later";
}

TEST_F(FlowStates, AreKeptForEachFlowAndDirection) {
  Frame answer = packet().eth().ipv4("192.0.2.1", "10.0.0.1").tcp(80, 1000).payload("answer").bytes();
  Frame tagged = packet().eth().vlan(5).ipv4("10.0.0.1", "192.0.2.1").tcp(1000, 80).payload("x").bytes();
  EXPECT_EQ(states_of({segment(1000, 100, "abc"), segment(1001, 100, "def"), answer, segment(1000, 103, "!"),
                       segment(1001, 103, "!"), tagged}),
            (Texts{"-", "-", "-", "abc", "def", "-"}));
}

//   100 "abc"   103 ┄┄ lost ┄┄   106 "ghi"   109 "jkl"
TEST_F(FlowStates, AreMissingAfterAGapAndRestartThere) {
  EXPECT_EQ(states_of({segment(1, 100, "abc"), segment(1, 106, "ghi"), segment(1, 109, "jkl")}),
            (Texts{"-", "-", "ghi"}));
}

TEST_F(FlowStates, IgnoreRetransmissionsAndRestartWithAnOverlappingSegment) {
  EXPECT_EQ(states_of({segment(1, 100, "abc"), segment(1, 103, "def"), segment(1, 100, "ABC"), segment(1, 106, "ghi"),
                       segment(1, 107, "hij"), segment(1, 110, "k")}),
            (Texts{"-", "abc", "-", "abcdef", "-", "hij"}));
}

TEST_F(FlowStates, AreNotKeptFromAnEarlierConnection) {
  EXPECT_EQ(states_of({segment(1, 100, "abc"), segment(1, 102, "", TcpHeader::kSyn), segment(1, 103, "d")}),
            (Texts{"-", "-", "-"}));
}

TEST_F(FlowStates, FollowSequenceNumbersThatWrap) {
  EXPECT_EQ(states_of({segment(1, 0xffff'fffe, "abc"), segment(1, 1, "d")}), (Texts{"-", "abc"}));
}

TEST_F(FlowStates, AreOnlyKeptForTcp) {
  const Frame udp = packet().eth().ipv4("10.0.0.1", "192.0.2.1").udp(1, 80).payload("abc").bytes();
  const Frame fragment = packet().eth().ipv4("10.0.0.1", "192.0.2.1", 64, {}, 0x2000).tcp(1, 80).payload("abc").bytes();
  EXPECT_EQ(states_of({udp, udp, fragment, fragment, Frame(60, std::uint8_t{0})}), (Texts{"-", "-", "-", "-", "-"}));
}

}  // namespace
}  // namespace penstock::nids
