// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "run/trace.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "run/cpu_executor.h"
#include "run/testing/fakes.h"

namespace penstock::run {
namespace {

using testing::each;
using testing::FakeChain;
using ::testing::HasSubstr;
using ::testing::Not;
using testing::number_of;

constexpr std::array<std::string_view, 1> kReasons{"too_old"};

/// The trace of the first `packets` of frames 0, 1, 2 … through a chain.
std::string trace_of(FakeChain& chain, std::uint64_t packets, std::uint64_t frames,
                     std::function<bool(PacketView)> chooses = {}) {
  chain.open();
  std::string text;
  Taps taps;
  EXPECT_TRUE(
      taps.trace.begin({packets, std::move(chooses), [&](const TracedPacket& packet) { text += to_string(packet); }}));
  WorkerCounters counters(chain);
  CpuExecutor executor(chain, 0, counters, &taps);
  executor.begin();
  std::vector<std::uint8_t> bytes(1 << 16);
  std::vector<PacketDescriptor> descriptors(frames);
  Batch batch(bytes, descriptors, {});
  for (const auto& frame : testing::numbered_frames(frames)) testing::append(batch, frame);
  EXPECT_TRUE(executor.submit(batch));
  return text;
}

TEST(Trace, ShowsWhatEachFunctionReadChangedAndDecided) {
  FakeChain chain;
  chain.add_sink("lan");
  chain.add_sink("wan");
  auto& ages = chain.add_function("ages", each([](PacketView packet) {
                                    --packet.ipv4().ttl;
                                    return Verdict::forward(1);
                                  }));
  ages.own_traits.cpu = {{Field::ipv4_ttl, Field::ipv4_dst, Field::ipv6_dst, Field::payload}, {Field::ipv4_ttl}};
  chain.add_function("looks on", [](std::span<PacketView>) {});
  EXPECT_EQ(trace_of(chain, 1, 1),
            "packet 1  0.000000001  from lan  50 bytes  IPv4 10.0.0.1:1024 > 192.0.2.1:53 UDP\n"
            "  ages\n"
            "    read ipv4_ttl=64 ipv4_dst=192.0.2.1\n"
            "    changed ipv4_ttl 64 → 63\n"
            "    forward to wan — number 0\n"
            "  looks on\n"
            "    read nothing\n"
            "    forward to wan — number 0\n"
            "  out on wan\n");
}

TEST(Trace, ShowsTheArmThatAPacketTakes) {
  FakeChain chain;
  chain.add_sink("out");
  chain.add_function("elsewhere", [](std::span<PacketView>) {});
  chain.add_function("here", [](std::span<PacketView>) {});
  chain.add_function("nowhere", [](std::span<PacketView>) {});
  chain.forks = {{0, 2, {{0, 1, {{{1}, {}}}, "in_port b"}, {1, 2, {{{0}, {}}}, "in_port a"}}},
                 {2, 3, {{2, 3, {{{}, {1}}}, "out_port b"}}}};
  EXPECT_EQ(trace_of(chain, 1, 1),
            "packet 1  0.000000001  from out  50 bytes  IPv4 10.0.0.1:1024 > 192.0.2.1:53 UDP\n"
            "  fork — in_port a\n"
            "  here\n"
            "    read nothing\n"
            "    forward — number 0\n"
            "  fork — no arm: straight on\n"
            "  out on out\n");
}

TEST(Trace, ShowsWhereAPacketEnds) {
  FakeChain chain;
  chain.add_source("in", testing::script({}));
  chain.add_sink("out").refuses = [](PacketView packet) { return number_of(packet) == 3; };
  chain
      .add_function("decides", each([](PacketView packet) {
                      switch (number_of(packet)) {
                        case 0: return Verdict::drop(0);
                        case 1: return Verdict::consume();
                        case 2: return Verdict::forward(0);
                        default: return Verdict::forward();
                      }
                    }))
      .own_traits.drop_reasons = kReasons;
  chain.add_function("last", [](std::span<PacketView>) {});
  const std::string text = trace_of(chain, 10, 5);
  std::vector<std::string> ways;
  for (std::size_t at = 0; at != std::string::npos;) {
    const std::size_t next = text.find("packet ", at + 1);
    ways.push_back(text.substr(at, next - at));
    at = next;
  }
  ASSERT_EQ(ways.size(), 5U) << text;
  EXPECT_THAT(ways[0], HasSubstr("drop: too_old — number 0"));
  EXPECT_THAT(ways[0], Not(HasSubstr("last")));
  EXPECT_THAT(ways[1], HasSubstr("    consume — "));
  EXPECT_THAT(ways[1], Not(HasSubstr("out on")));
  EXPECT_THAT(ways[2], HasSubstr("  drop: no_such_exit\n"));
  EXPECT_THAT(ways[3], HasSubstr("  drop: port_refused\n"));
  EXPECT_THAT(ways[4], HasSubstr("  out on out\n"));
}

TEST(Trace, ShowsThatAPacketWithoutAnOutputPortIsConsumed) {
  FakeChain chain;
  chain.add_source("in", testing::script({}));
  EXPECT_THAT(trace_of(chain, 1, 1), HasSubstr("UDP\n  consumed\n"));
}

TEST(Trace, StopsAfterTheRequestedNumberOfPackets) {
  FakeChain chain;
  auto& out = chain.add_sink("out");
  const std::string text = trace_of(chain, 2, 200);
  EXPECT_THAT(text, HasSubstr("packet 2 "));
  EXPECT_THAT(text, Not(HasSubstr("packet 3 ")));
  EXPECT_EQ(out.sent[0].size(), 200U) << "the others go their way untraced";
}

TEST(Trace, TakesOnlyThePacketsThatAreChosenAndKeepsTheOrder) {
  FakeChain chain;
  auto& out = chain.add_sink("out");
  const std::string text = trace_of(chain, 2, 200, [](PacketView packet) { return number_of(packet) % 50 == 49; });
  EXPECT_THAT(text, HasSubstr("packet 2 "));
  EXPECT_THAT(text, HasSubstr("  99 bytes  ")) << "the longest frames";
  EXPECT_THAT(text, Not(HasSubstr("packet 3 ")));
  std::vector<std::uint64_t> in_order(200);
  std::iota(in_order.begin(), in_order.end(), 0);
  EXPECT_EQ(out.numbers(), in_order);
}

TEST(Tap, HasOneOrderAtATimeUntilAllItsItemsAreGiven) {
  Taps taps;
  int taken = 0;
  ASSERT_TRUE(taps.trace.begin({1, {}, [&](const TracedPacket&) { ++taken; }}));
  EXPECT_FALSE(taps.trace.begin({1, {}, {}}));
  const auto session = taps.trace.join();
  PacketDescriptor packet;
  ASSERT_TRUE(session->choose({nullptr, &packet}));
  EXPECT_FALSE(session->choose({nullptr, &packet})) << "all are chosen";
  EXPECT_FALSE(taps.trace.wants_more());
  EXPECT_FALSE(taps.trace.begin({1, {}, {}})) << "one is not given yet";
  session->give({});
  EXPECT_EQ(taken, 1);
  EXPECT_TRUE(taps.trace.begin({5, {}, [&](const TracedPacket&) { ++taken; }}));
  const auto next = taps.trace.join();
  ASSERT_TRUE(next->choose({nullptr, &packet}));
  taps.trace.end();
  next->give({});
  EXPECT_EQ(taken, 1) << "its recipient has gone";
  EXPECT_EQ(taps.trace.join(), nullptr);
}

TEST(Capture, HasDroppedFramesAsTheyCameIntoTheFunction) {
  FakeChain chain;
  chain.add_sink("out");
  auto& drops = chain.add_function("drops", each([](PacketView packet) {
                                     packet.frame[0] = 0xee;  // before it decides
                                     return number_of(packet) % 10 == 3   ? Verdict::drop(0)
                                            : number_of(packet) % 10 == 4 ? Verdict::drop(1)
                                                                          : Verdict::forward();
                                   }));
  static constexpr std::array<std::string_view, 2> kTwo{"one", "other"};
  drops.own_traits.drop_reasons = kTwo;
  drops.own_traits.cpu = {{Field::eth_dst, Field::payload}, {Field::eth_dst, Field::verdict}};
  chain.open();
  Taps taps;
  std::vector<std::uint64_t> captured;
  const auto take = [&](const DroppedFrame& dropped) {
    EXPECT_EQ(dropped.reason, 1);
    EXPECT_EQ(dropped.packet.frame[0], 2) << "as it came";
    captured.push_back(number_of(dropped.packet));
  };
  ASSERT_TRUE(taps.capture.begin(0, 1, {3, {}, take}));
  WorkerCounters counters(chain);
  CpuExecutor executor(chain, 0, counters, &taps);
  executor.begin();
  std::vector<std::uint8_t> bytes(1 << 16);
  std::vector<PacketDescriptor> descriptors(200);
  Batch batch(bytes, descriptors, {});
  for (const auto& frame : testing::numbered_frames(200)) testing::append(batch, frame);
  EXPECT_TRUE(executor.submit(batch));
  EXPECT_EQ(captured, (std::vector<std::uint64_t>{4, 14, 24}));
  EXPECT_EQ(taps.capture.wanted(), Capture::kNone);
}

}  // namespace
}  // namespace penstock::run
