// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Outbound, where the worker decides and the device of another process carries that out: the result is what the CPU
// stage alone would have made, numbers included, whatever the device fails.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "nf/ipsec/remote_end_for_test.h"

namespace penstock::ipsec {
namespace {

using namespace ipsec::testing;
using penstock::testing::RandomFrames;
using ::testing::Each;
using ::testing::ElementsAre;

RemoteEnd remote(const std::string& states, const std::string& policies, const Settings& settings = {}) {
  return RemoteEnd(outwards(states, policies, remote_device(settings)));
}
std::vector<Arriving> arriving(const std::vector<Frame>& frames) {
  std::vector<Arriving> all;
  for (const Frame& frame : frames) all.emplace_back(frame.bytes, frame.link_type, frame.wire_length);
  return all;
}
std::vector<std::uint32_t> numbers_of(const std::vector<Done>& all) {
  std::vector<std::uint32_t> numbers;
  for (const Done& done : all) numbers.push_back(sequence_of(done.bytes));
  return numbers;
}
const std::string kOne = everything("out", tunnel_template());

TEST(IpsecDecision, MakesOfEachPacketWhatTheCpuMakes) {
  Settings refuses, answers;
  refuses.mtu = answers.mtu = 1400;
  refuses.too_big = answers.too_big = TooBig::icmp;
  refuses.answers = false;
  refuses.drops_unselected = true;
  for (const Settings& settings : {Settings{}, refuses, answers}) {
    for (const int failing : {0, 1, 2}) {  // no batch, each, every second one
      End twin = outwards(kOutboundStates, outbound_policies(), settings);
      RemoteEnd device = remote(kOutboundStates, outbound_policies(), settings);
      RandomFrames choose(5);
      std::size_t forwarded = 0;
      for (int batch = 0; batch < 8; ++batch) {
        const std::vector<Arriving> frames = arriving(outbound_frames(300, choose));
        const auto flight = device.begin(frames);
        const bool fails = failing != 0 && batch % failing == 0;
        const std::vector<Done> done = fails ? device.end_on_cpu(*flight) : device.end_on_device(*flight);
        const std::vector<Done> expected = twin(frames);
        for (std::size_t i = 0; i < frames.size(); ++i) {
          ASSERT_EQ(done[i], expected[i]) << batch << ", " << i;
          forwarded += done[i].fate == "forwarded" ? 1 : 0;
        }
      }
      EXPECT_GT(forwarded, 500U);
      for (std::uint32_t sa = 0; sa < kOutboundSas; ++sa) {
        EXPECT_GT(device.end.state(sa).sent(), 100U) << sa;
        EXPECT_EQ(device.end.state(sa).sent(), twin.state(sa).sent()) << sa;
      }
      nlohmann::json of_device, of_twin;
      device.end.function->report(of_device);
      twin.function->report(of_twin);
      EXPECT_EQ(of_device, of_twin);
    }
  }
}

//   decided:  A 1 2 3   B 4 5 6   C 7 8 9
//   A fails, C comes back first
TEST(IpsecDecision, StaysWithItsPacketWhereTheDeviceFails) {
  RemoteEnd device = remote(StateText()(), kOne);
  const std::vector<Arriving> three(3, plain());
  const auto a = device.begin(three), b = device.begin(three), c = device.begin(three);
  EXPECT_THAT(numbers_of(device.end_on_device(*c)), ElementsAre(7, 8, 9));
  EXPECT_THAT(numbers_of(device.end_on_cpu(*a)), ElementsAre(1, 2, 3));
  EXPECT_THAT(numbers_of(device.end_on_cpu(*b)), ElementsAre(4, 5, 6));
  EXPECT_THAT(numbers_of(device.end(three)), ElementsAre(10, 11, 12)) << "a batch that was never decided";
}

TEST(IpsecDecision, IsNotThatOfALaterPacketInTheSameMemory) {
  RemoteEnd device = remote(StateText()(), kOne);
  const auto flight = device.begin({plain(), plain()});
  device.state_stage->hand_back(flight->views,
                                std::vector<const std::byte*>(flight->states.begin(), flight->states.end()));
  device.end.stage->begin_batch();
  device.end.stage->process(flight->views);
  EXPECT_EQ(sequence_of(Bytes(flight->views[0].frame, flight->views[0].frame + 60)), 3U);
}

TEST(IpsecDecision, ChangesNoVerdictOnTheHost) {
  RemoteEnd device = remote(StateText()(), policy_text("src 10.0.0.0/8 dst 0.0.0.0/0", "out", "") +
                                               policy_text("src ::/0 dst ::/0", "out", "", 200));
  RoomyFrame frame(plain());
  frame.view.packet->verdict = Verdict::forward(3);
  Decision decision;
  auto* const state = reinterpret_cast<std::byte*>(&decision);
  device.state_stage->fill({&frame.view, 1}, {&state, 1});
  EXPECT_EQ(frame.view.packet->verdict, Verdict::forward(3));
  EXPECT_EQ(decision.kind, Decision::Kind::passes);
}

TEST(IpsecDecision, CountsAPacketOnceTowardsLimitsWhateverFails) {
  StateText state;
  state.more = limited("soft (INF)(packets), hard 10(packets)");
  for (const bool fails : {false, true}) {
    RemoteEnd device = remote(state(), kOne);
    const std::vector<Arriving> six(6, plain());
    const auto first = device.begin(six), second = device.begin(six);
    EXPECT_THAT(fates(fails ? device.end_on_cpu(*first) : device.end_on_device(*first)), Each("forwarded"));
    EXPECT_THAT(fates(fails ? device.end_on_cpu(*second) : device.end_on_device(*second)),
                ElementsAre("forwarded", "forwarded", "forwarded", "forwarded", "lifetime", "lifetime"));
    EXPECT_EQ(device.end.state().packets(), 10U);
    EXPECT_EQ(device.end.state().hard(), SaState::Limit::packets);
    nlohmann::json report;
    device.end.function->report(report);
    EXPECT_EQ(report["sas"][0]["packets"], 10);
  }
}

TEST(IpsecDecision, LetsASuccessorTakeOverWithoutLoss) {
  StateText older, newer;
  older.more = limited(kNoLimit);
  newer.spi = 0x2000;
  newer.more =
      limited("soft (INF)(packets), hard 5(packets)", "soft (INF)(bytes), hard (INF)(bytes)", "2001-01-01 01:00:00");
  RemoteEnd device = remote(older() + newer(), kOne);
  const auto flight = device.begin(std::vector<Arriving>(8, plain()));
  const std::vector<Done> done = device.end_on_device(*flight);
  EXPECT_THAT(fates(done), Each("forwarded"));
  for (std::size_t i = 0; i < done.size(); ++i) EXPECT_EQ(spi_of(done[i].bytes), i < 5 ? 0x2000U : 0x1000U);
}

TEST(IpsecDecision, GivesWorkersDifferentNumbers) {
  SaRegistry registry;
  constexpr unsigned kWorkers = 3, kBatches = 20;
  const std::vector<Arriving> batch(150, plain());
  std::vector<std::vector<Done>> of_worker(kWorkers);
  std::vector<std::unique_ptr<RemoteEnd>> ends;
  for (unsigned w = 0; w < kWorkers; ++w)
    ends.push_back(std::make_unique<RemoteEnd>(outwards(StateText()(), kOne, remote_device(), &registry)));
  {
    std::vector<std::jthread> threads;
    for (unsigned w = 0; w < kWorkers; ++w) {
      threads.emplace_back([&, w] {
        for (unsigned b = 0; b < kBatches; ++b) {
          const auto flight = ends[w]->begin(batch);
          for (Done& done : b % 3 == w ? ends[w]->end_on_cpu(*flight) : ends[w]->end_on_device(*flight))
            of_worker[w].push_back(std::move(done));
        }
      });
    }
  }
  std::set<std::uint32_t> all;
  for (const auto& done : of_worker) {
    const std::vector<std::uint32_t> numbers = numbers_of(done);
    EXPECT_TRUE(std::ranges::is_sorted(numbers)) << "a worker's own packets are in order";
    all.insert(numbers.begin(), numbers.end());
  }
  EXPECT_EQ(all.size(), kWorkers * kBatches * batch.size());
  EXPECT_EQ(*all.rbegin(), all.size()) << "without a gap";
}

TEST(IpsecDecision, CannotBeMadeWithoutNumbers) {
  StateText state;
  state.sent = 0xffff'fffd;
  RemoteEnd device = remote(state(), kOne);
  const auto flight = device.begin(std::vector<Arriving>(4, plain()));
  EXPECT_THAT(fates(device.end_on_device(*flight)),
              ElementsAre("forwarded", "forwarded", "sequence_exhausted", "sequence_exhausted"));
}

TEST(IpsecDecision, HasTheUpperHalfOfNumbersWithEsn) {
  StateText state;
  state.esn = true;
  state.algorithms = kCbcSha1;  // the upper half is in the ICV only
  state.sent = 0xffff'fffe;
  RemoteEnd device = remote(state(), kOne);
  End twin = outwards(state(), kOne);
  const std::vector<Arriving> batch(4, plain());
  const auto flight = device.begin(batch);
  EXPECT_EQ(flight->decisions[3].sequence, 0x1'0000'0002U);
  EXPECT_EQ(device.end_on_device(*flight), twin(batch));
}

TEST(IpsecDecision, OpensAtThePeerWithEveryAlgorithm) {
  RemoteEnd device = remote(kOutboundStates, outbound_policies());
  End in = inwards(kOutboundStates);
  RandomFrames choose(7);
  const std::vector<Frame> frames = outbound_frames(600, choose);
  const auto flight = device.begin(arriving(frames));
  std::size_t opened = 0;
  const std::vector<Done> done = device.end_on_device(*flight);
  for (std::size_t i = 0; i < frames.size(); ++i) {
    if (flight->decisions[i].kind != Decision::Kind::protected_by_sa || frames[i].link_type != LinkType::ethernet)
      continue;
    const Done inner = in(done[i].bytes);
    ASSERT_EQ(inner.fate, "forwarded") << i;
    const Bytes& before = frames[i].bytes;
    ASSERT_GE(before.size(), inner.bytes.size());  // Ethernet's padding is cut off
    ASSERT_EQ(Bytes(before.begin(), before.begin() + static_cast<std::ptrdiff_t>(inner.bytes.size())), inner.bytes);
    ++opened;
  }
  EXPECT_GT(opened, 300U);
}

}  // namespace
}  // namespace penstock::ipsec
