// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "stack/shared_stack.h"

#include <gtest/gtest.h>

#include <array>
#include <deque>
#include <string>
#include <vector>

#include "packet/testing/packet_builder.h"
#include "stack/tcp_session.h"

namespace penstock::stack {
namespace {

using Groups = std::vector<std::vector<std::size_t>>;

Groups groups(const std::vector<StackUse>& chain) {
  Groups all;
  for (const ViewPlan& view : plan_views(chain)) all.push_back(view.functions);
  return all;
}

constexpr StackUse kPlain{};
constexpr StackUse kFirewall{.ends_packets = true};
constexpr StackUse kRouter{.ends_packets = true, .changes_packets = true};
constexpr StackUse kCounter{.need = StackNeed::flow};
constexpr StackUse kGate{.need = StackNeed::flow, .ends_packets = true};  // a stateful firewall
constexpr StackUse kIds{.need = StackNeed::tcp_stream};
constexpr StackUse kIps{.need = StackNeed::tcp_stream, .ends_packets = true, .options = {.inline_streams = true}};

TEST(Views, AreNotMadeForFunctionsThatNeedNothing) { EXPECT_EQ(groups({kPlain, kFirewall, kRouter}), Groups{}); }

TEST(Views, AreSharedByFunctionsThatSeeTheSamePackets) {
  EXPECT_EQ(groups({kIds, kIds}), (Groups{{0, 1}}));
  EXPECT_EQ(groups({kFirewall, kIds, kPlain, kIds, kRouter}), (Groups{{1, 3}}));
  EXPECT_EQ(groups({kCounter, kIds}), (Groups{{0, 1}}));
}

TEST(Views, EndWherePacketsAreDroppedOrChanged) {
  EXPECT_EQ(groups({kIds, kFirewall, kIds}), (Groups{{0}, {2}}));
  EXPECT_EQ(groups({kIds, kRouter, kIds}), (Groups{{0}, {2}}));
  EXPECT_EQ(groups({kIps, kIds}), (Groups{{0}, {1}}));
  EXPECT_EQ(groups({kCounter, kGate, kIds}), (Groups{{0}, {1, 2}}));
  EXPECT_EQ(groups({kGate, kGate}), (Groups{{0}, {1}}));
}

TEST(Views, AreNotSharedWithAFunctionOfStreamsThatComesFirst) {
  EXPECT_EQ(groups({kIds, kCounter}), (Groups{{0}, {1}}));
  EXPECT_EQ(groups({kCounter, kIds, kCounter}), (Groups{{0, 1}, {2}}));
}

TEST(Views, MayBeginWithAFunctionThatDropsByFlows) {
  EXPECT_EQ(groups({kGate, kIds, kIds, kRouter}), (Groups{{0, 1, 2}}));
  EXPECT_EQ(groups({kGate, kFirewall, kIds}), (Groups{{0}, {2}}));
}

TEST(Views, AreNotSharedByFunctionsWithOtherOptions) {
  StackUse windows = kIds;
  windows.options.stream_policy = OverlapPolicy::windows;
  EXPECT_EQ(groups({kIds, windows}), (Groups{{0}, {1}}));
  StackUse wide = kIds;  // what suits this one suits the other as well
  wide.options.seam_bytes = 400;
  EXPECT_EQ(groups({kIds, wide, kIds}), (Groups{{0, 1, 2}}));
  EXPECT_EQ(plan_views(std::vector{kIds, wide, kIds})[0].options.seam_bytes, 400U);
  EXPECT_EQ(groups({kCounter, windows}), (Groups{{0, 1}}));
}

TEST(Views, AreNotSharedOverThePlansRuns) {
  StackUse later = kIds;
  later.run = 1;
  EXPECT_EQ(groups({kIds, later}), (Groups{{0}, {1}}));
  StackUse on_device = kIds, counts_on_device = kCounter;
  on_device.in_batches = counts_on_device.in_batches = true;
  EXPECT_EQ(groups({on_device, on_device}), (Groups{{0, 1}}));
  EXPECT_EQ(groups({counts_on_device, on_device}), (Groups{{0}, {1}}));
}

TEST(Views, KeepNoStreamsForFunctionsOfFlowsAlone) {
  EXPECT_FALSE(plan_views(std::vector{kCounter})[0].options.keep_streams);
  EXPECT_TRUE(plan_views(std::vector{kCounter, kIds})[0].options.keep_streams);
  EXPECT_FALSE(plan_views(std::vector{kGate})[0].lockstep);
  EXPECT_TRUE(plan_views(std::vector{kGate, kIds})[0].lockstep);
  EXPECT_FALSE(plan_views(std::vector{kIds, kIds})[0].lockstep);
}

/// Packets of TCP between 10.0.0.1:4000 and 10.0.0.2:80.
class Packets {
 public:
  PacketView tcp(bool from_client, std::uint8_t flags, std::uint32_t sequence, std::uint32_t ack,
                 std::string_view text = "") {
    auto& bytes =
        bytes_.emplace_back(penstock::testing::packet()
                                .eth()
                                .ipv4(from_client ? "10.0.0.1" : "10.0.0.2", from_client ? "10.0.0.2" : "10.0.0.1")
                                .tcp(from_client ? 4000 : 80, from_client ? 80 : 4000, flags)
                                .payload(text)
                                .bytes());
    auto& header = *reinterpret_cast<TcpHeader*>(bytes.data() + 34);
    header.sequence.set(sequence);
    header.acknowledgment.set(ack);
    header.window.set(60000);
    return view(bytes);
  }
  PacketView udp(std::uint16_t from, std::uint16_t to) {
    return view(bytes_.emplace_back(
        penstock::testing::packet().eth().ipv4("10.0.0.1", "10.0.0.2").udp(from, to).payload("text").bytes()));
  }

 private:
  PacketView view(std::vector<std::uint8_t>& bytes) {
    PacketDescriptor& packet = descriptors_.emplace_back();
    packet.length = packet.wire_length = static_cast<std::uint32_t>(bytes.size());
    packet.timestamp_ns = 1'700'000'000'000'000'000 + descriptors_.size() * 1000;
    packet.verdict = Verdict::forward();
    return {bytes.data(), &packet};
  }
  std::deque<std::vector<std::uint8_t>> bytes_;
  std::deque<PacketDescriptor> descriptors_;
};

constexpr std::uint8_t kSyn = TcpHeader::kSyn, kAck = TcpHeader::kAck, kFin = TcpHeader::kFin;

/// Keeps what it is given of streams to the server.
struct Looker final : FrameSink {
  void begin_frame(PacketView, std::size_t index) noexcept override { frames.push_back(index); }
  void begin_end() noexcept override {}
  void packet(TrackedPacket& packet) noexcept override {
    flow = packet.flow;
    if (!packet.stream_ready || packet.direction != Direction::to_server) return;
    packet.flow->tcp->inspect(packet.direction, packet.stream_end, [&](const StreamChunk& chunk) {
      const auto news = chunk.bytes.subspan(chunk.seen);
      text.append(news.begin(), news.end());
      seen.push_back(chunk.seen);
    });
  }
  void flow_ended(Flow&) noexcept override { ++ended; }

  std::vector<std::size_t> frames;
  std::string text;
  std::vector<std::uint32_t> seen;
  Flow* flow = nullptr;
  int ended = 0;
};

constexpr std::array<std::uint32_t, 1> kOne{};
constexpr std::array<std::uint32_t, 2> kTwo{};
constexpr std::array<std::uint32_t, 3> kThree{};

struct Gate {
  explicit Gate(Attachment& attached) : attachment(attached) {
    attachment.when_flow_ends([this](Flow& flow) { ended.push_back(attachment.slot(flow)); });
  }
  Attachment& attachment;
  std::vector<std::uint64_t> ended;
};

TEST(Attachment, KeepsAWordOfEachFlowAndSaysWhenItEnds) {
  TrafficView view({.keep_streams = false}, kTwo);
  Gate one(view.attachment(0)), other(view.attachment(1));
  Packets packets;
  for (int i = 0; i < 3; ++i) {
    const PacketView packet = packets.udp(4000, 53);
    ++one.attachment.slot(*one.attachment.flow_of(packet).flow);
    EXPECT_EQ(other.attachment.slot(*other.attachment.flow_of(packet).flow), 0U);
  }
  const PacketView of_another_flow = packets.udp(4001, 53);
  EXPECT_TRUE(one.attachment.flow_of(of_another_flow).begins);
  one.attachment.slot(*one.attachment.flow_of(of_another_flow).flow) = 7;
  view.finish();
  EXPECT_EQ(one.ended, (std::vector<std::uint64_t>{3, 7}));
  EXPECT_EQ(other.ended, std::vector<std::uint64_t>{});  // it never kept anything
}

//   client                       server
//     | SYN ----------------x      |   dropped: no flow
//     | SYN ---------------------> |
//     |      x-------------SYN/ACK |   dropped: not answered yet
//     | <------------------SYN/ACK |
//     | ACK ---------------------> |   established after it
TEST(Attachment, DroppedPacketsCountForNothing) {
  TrafficView view({.keep_streams = false}, kOne);
  Gate gate(view.attachment(0));
  Packets packets;
  const auto ask = [&](PacketView packet, bool passes) {
    const PacketFlow found = gate.attachment.flow_of(packet);
    if (!passes) packet.packet->verdict = Verdict::drop(0);
    return found;
  };
  PacketFlow found = ask(packets.tcp(true, kSyn, 99, 0), false);
  EXPECT_TRUE(found.begins);
  ++gate.attachment.slot(*found.flow);
  found = ask(packets.tcp(true, kSyn, 99, 0), true);
  EXPECT_EQ(gate.ended, std::vector<std::uint64_t>{1});  // the flow that was not to be
  EXPECT_TRUE(found.begins);
  EXPECT_EQ(gate.attachment.slot(*found.flow), 0U);
  found = ask(packets.tcp(false, kSyn | kAck, 999, 100), false);
  EXPECT_FALSE(found.begins);
  EXPECT_EQ(found.direction, Direction::to_client);
  EXPECT_EQ(found.flow->counts[0].packets, 1U);
  found = ask(packets.tcp(false, kSyn | kAck, 999, 100), true);
  EXPECT_EQ(found.flow->counts[1].packets, 0U);
  found = ask(packets.tcp(true, kAck, 100, 1000), true);
  EXPECT_FALSE(found.established);
  found = ask(packets.tcp(false, kAck, 1000, 100), true);
  EXPECT_TRUE(found.established);
  view.settle();
  EXPECT_EQ(gate.attachment.counters().flows, 1U);
}

//   client                      server
//     | handshake <-------------> |
//     | "EVIL" ----------x        |   the gate drops it
//     | "good" -----------------> |
//     | FIN --------------------> |
TEST(TrafficView, FeedsNoStreamWithWhatTheFirstFunctionDrops) {
  TrafficView view({.inline_streams = true}, kThree);
  Gate gate(view.attachment(0));
  Looker one, other;
  view.attachment(1).look_with(one);
  view.attachment(2).look_with(other);
  EXPECT_FALSE(view.attachment(1).tracks());
  EXPECT_TRUE(view.attachment(2).tracks());
  Packets packets;
  const auto pass = [&](PacketView packet, bool passes = true) {
    ++gate.attachment.slot(*gate.attachment.flow_of(packet).flow);
    if (passes) return view.attachment(2).track(packet, 0);
    packet.packet->verdict = Verdict::drop(0);
    view.settle();
  };
  pass(packets.tcp(true, kSyn, 99, 0));
  pass(packets.tcp(false, kSyn | kAck, 999, 100));
  pass(packets.tcp(true, kAck, 100, 1000));
  pass(packets.tcp(true, kAck, 100, 1000, "EVIL"), false);
  EXPECT_EQ(one.flow->counts[0].packets, 2U);
  pass(packets.tcp(true, kAck, 100, 1000, "good"));
  pass(packets.tcp(true, kAck | kFin, 104, 1000));
  view.finish();
  EXPECT_EQ(one.text, "good");
  EXPECT_EQ(other.text, "good");
  EXPECT_EQ(one.ended, 1);
  EXPECT_EQ(other.ended, 1);
  EXPECT_EQ(gate.ended, std::vector<std::uint64_t>{6});
}

// The client's bytes are inspected when it sends again after the server's ACK.
TEST(Attachment, OffersMoreOfAStreamOnceItsSeamIsRaised) {
  for (const unsigned functions : {1U, 2U}) {
    TrafficView view({.seam_bytes = 100}, std::vector<std::uint32_t>(functions, 100));
    std::vector<Looker> lookers(functions);
    for (unsigned i = 0; i < functions; ++i) view.attachment(i).look_with(lookers[i]);
    Attachment& last = view.attachment(functions - 1);
    Packets packets;
    last.track(packets.tcp(true, kSyn, 99, 0), 0);
    last.track(packets.tcp(false, kSyn | kAck, 999, 100), 1);
    std::uint32_t sequence = 100;
    const auto segment = [&] {
      last.track(packets.tcp(true, kAck, sequence, 1000, std::string(3000, 'x')), 0);
      sequence += 3000;
      last.track(packets.tcp(false, kAck, 1000, sequence), 0);
      last.track(packets.tcp(true, kAck, sequence, 1000), 0);
    };
    segment();
    segment();
    last.set_seam(700);
    segment();
    segment();
    Looker other;
    last.look_with(other);
    segment();
    last.set_seam(50);
    segment();
    EXPECT_EQ(lookers.back().seen, (std::vector<std::uint32_t>{0, 100, 100, 700}));
    EXPECT_EQ(other.seen, (std::vector<std::uint32_t>{700, functions == 1 ? 700U : 50U}));
    if (functions > 1) {
      EXPECT_EQ(lookers.front().seen, (std::vector<std::uint32_t>{0, 100, 100, 100, 100, 100}));
    }
  }
}

TEST(TrafficView, GivesEachFunctionTheSameOfAStream) {
  for (const bool is_inline : {false, true}) {
    std::vector<std::string> texts;
    for (const unsigned functions : {1U, 3U}) {
      TrafficView view({.inline_streams = is_inline}, std::vector<std::uint32_t>(functions));
      std::vector<Looker> lookers(functions);
      for (unsigned i = 0; i < functions; ++i) view.attachment(i).look_with(lookers[i]);
      Attachment& last = view.attachment(functions - 1);
      Packets packets;
      last.track(packets.tcp(true, kSyn, 99, 0), 0);
      last.track(packets.tcp(false, kSyn | kAck, 999, 100), 1);
      std::uint32_t sequence = 100;
      for (int i = 0; i < 8; ++i) {
        const std::string text(700, static_cast<char>('a' + i));
        last.track(packets.tcp(true, kAck, sequence, 1000, text), 2);
        if (i == 4) last.track(packets.tcp(true, kAck, sequence, 1000, std::string(700, '?')), 2);  // contested
        sequence += 700;
        last.track(packets.tcp(false, kAck, 1000, sequence), 3);
      }
      view.finish();
      for (const Looker& looker : lookers) texts.push_back(looker.text);
    }
    EXPECT_GE(texts[0].size(), 5600U);
    for (const std::string& text : texts) EXPECT_EQ(text, texts[0]);
  }
}

}  // namespace
}  // namespace penstock::stack
