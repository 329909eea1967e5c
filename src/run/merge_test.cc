// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Captures of several ports are merged by time.

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <map>
#include <tuple>
#include <vector>

#include "packet/testing/packet_builder.h"
#include "port/testing/port_harness.h"
#include "run/run.h"
#include "run/testing/fakes.h"

namespace penstock::run {
namespace {

using port::testing::Captured;
using port::testing::TemporaryFolder;
using port::testing::write_capture;

constexpr unsigned kFlows = 64;

/// Conversations with alternating requests and answers, a microsecond apart, split by direction: the first capture has
/// the requests. The two payload bytes are the packet's number in its conversation.
std::array<std::vector<Captured>, 2> conversations(unsigned packets_of_each) {
  std::array<std::vector<Captured>, 2> captures;
  std::uint64_t time = 1'700'000'000'000'000'000;
  for (unsigned n = 0; n < packets_of_each; ++n) {
    for (unsigned flow = 0; flow < kFlows; ++flow) {
      const bool back = n % 2 == 1;
      const std::array<char, 2> number{static_cast<char>(n >> 8), static_cast<char>(n & 255)};
      const auto port = static_cast<std::uint16_t>(1000 + flow);
      auto frame = penstock::testing::packet()
                       .eth()
                       .ipv4(back ? "192.0.2.1" : "10.0.0.1", back ? "10.0.0.1" : "192.0.2.1")
                       .udp(back ? 53 : port, back ? port : 53)
                       .payload({number.data(), number.size()})
                       .bytes();
      const auto length = static_cast<std::uint32_t>(frame.size());
      captures[n % 2].push_back({time += 1000, length, LinkType::ethernet, std::move(frame)});
    }
  }
  return captures;
}

TEST(Merge, CapturesOfSeveralPortsAreMergedByTime) {
  // More than fits into the rings to the workers.
  const auto [requests, answers] = conversations(2000);
  const TemporaryFolder folder;
  write_capture(folder / "requests.pcap", requests);
  write_capture(folder / "answers.pcap", answers);
  for (const unsigned workers : {1U, 3U}) {
    Chain chain;
    chain.settings.workers = workers;
    chain.ports.push_back({"a", port::testing::must_make("pcap", {{"read", {folder / "requests.pcap"}}}, 0)});
    chain.ports.push_back({"b", port::testing::must_make("pcap", {{"read", {folder / "answers.pcap"}}}, 1)});
    chain.wiring = {kNoPort, kNoPort};
    // Each flow belongs to one worker, so nothing here is shared.
    struct alignas(64) Seen {
      std::uint64_t time = 0;
      unsigned packets = 0;
      unsigned out_of_order = 0;
    };
    std::vector<Seen> seen(kFlows);
    auto function = std::make_unique<testing::FakeFunction>();
    function->process = testing::each([&](PacketView packet) {
      const std::uint16_t ports[] = {packet.udp().source_port.value(), packet.udp().destination_port.value()};
      Seen& flow = seen[std::max(ports[0], ports[1]) - 1000U];
      flow.out_of_order += packet.packet->timestamp_ns <= flow.time ? 1 : 0;
      flow.time = packet.packet->timestamp_ns;
      ++flow.packets;
      return Verdict::forward();
    });
    chain.functions.push_back({"watch", std::move(function)});
    const std::atomic<bool> never{false};
    const auto result = run(chain, {}, never);
    ASSERT_TRUE(result) << to_string(result.error());
    for (const Seen& flow : seen) {
      EXPECT_EQ(flow.packets, 2000U);
      EXPECT_EQ(flow.out_of_order, 0U) << workers << " workers";
    }
  }
}

TEST(Merge, ACaptureThatEndsOrGoesBackInTimeDelaysNoOther) {
  auto [requests, answers] = conversations(200);
  answers.resize(10);                                                  // ends early
  std::swap(requests[100], requests.back());                           // not in order
  for (Captured& packet : answers) packet.timestamp_ns += 50'000'000;  // in the middle of the others
  const TemporaryFolder folder;
  write_capture(folder / "requests.pcap", requests);
  write_capture(folder / "answers.pcap", answers);
  for (const unsigned workers : {1U, 2U, 4U}) {
    Chain chain;
    chain.settings.workers = workers;
    chain.ports.push_back({"a", port::testing::must_make("pcap", {{"read", {folder / "requests.pcap"}}}, 0)});
    chain.ports.push_back({"b", port::testing::must_make("pcap", {{"read", {folder / "answers.pcap"}}}, 1)});
    chain.wiring = {kNoPort, kNoPort};
    const std::atomic<bool> never{false};
    const auto result = run(chain, {}, never);
    ASSERT_TRUE(result) << to_string(result.error());
    EXPECT_EQ(report::to_json(result->report)["packets"]["in"], requests.size() + answers.size());
  }
}

}  // namespace
}  // namespace penstock::run
