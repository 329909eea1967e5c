// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "run/hand_over.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>

#include <array>
#include <atomic>
#include <chrono>
#include <deque>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "base/testing/rounds.h"
#include "conntrack/connections.h"
#include "conntrack/nat.h"
#include "packet/testing/fragments.h"
#include "port/worker_of.h"
#include "run/cpu_executor.h"
#include "run/run.h"
#include "run/testing/fakes.h"

namespace penstock::run {
namespace {

using penstock::testing::packet;
using testing::append;
using testing::Bytes;
using testing::FakeChain;
using testing::FakePort;
using testing::number_of;
using testing::numbered;

constexpr std::array<std::string_view, 1> kReasons{"untranslated"};
const std::string kPublic = "203.0.113.5", kServer = "192.0.2.1";

/// Translates the sources of all connections to one address.
class Masquerading final : public function::NetworkFunction {
 public:
  Masquerading() {
    traits_.connections = conntrack::Options{.most_connections = 1000, .checksum = false};
    traits_.shares_connections = true;
    traits_.drop_reasons = kReasons;
  }
  const function::NfTraits& traits() const noexcept override { return traits_; }
  std::unique_ptr<function::CpuStage> make_cpu_stage() override { return std::make_unique<Stage>(); }
  std::string description() const override { return "masquerades"; }

 private:
  class Stage final : public function::CpuStage {
   public:
    void set_connections(conntrack::Connections& connections) noexcept override { connections_ = &connections; }
    void process(std::span<PacketView> packets) noexcept override {
      connections_->prepare(packets);
      for (const PacketView packet : packets) {
        if (!translate(packet)) packet.packet->verdict = Verdict::drop(0);
      }
    }

   private:
    [[nodiscard]] bool translate(PacketView packet) noexcept {
      using conntrack::NatKind;
      const Ipv6Address address{0, parse_ipv4(kPublic)->bits};
      const conntrack::NatRange range{
          .first_address = address, .last_address = address, .flags = conntrack::NatRange::kAddresses};
      const conntrack::Tracked tracked = connections_->of(packet);
      if (tracked.connection == nullptr) return false;
      if (connections_->may_begin(tracked) && tracked.may_be_first() &&
          (!connections_->translate(tracked, NatKind::destination, {}) ||
           !connections_->translate(tracked, NatKind::source, range))) {
        connections_->refuse(packet);
        return false;
      }
      using conntrack::Rewrite;
      return conntrack::rewrite(packet, conntrack::rewrite_for(tracked, Rewrite::kDestination)) &&
             conntrack::rewrite(packet, conntrack::rewrite_for(tracked, Rewrite::kSource));
    }
    conntrack::Connections* connections_ = nullptr;
  };
  function::NfTraits traits_{.name = "masquerades", .summary = "", .cpu = {FieldSet::all(), {Field::ipv4_src}}};
};

/// A datagram with a number. `host`: 10.0.0.…; few hosts have few ports, so that many connections want the same.
Bytes query(unsigned flow, std::uint64_t number) {
  std::string payload(8, '\0');
  for (std::size_t i = 0; i < 8; ++i) payload[i] = static_cast<char>(number >> (56 - 8 * i));
  return packet()
      .eth()
      .ipv4("10.0.0." + std::to_string(1 + flow), kServer)
      .udp(static_cast<std::uint16_t>(1000 + flow % 5), 53)
      .payload(payload)
      .bytes();
}

unsigned worker_of(const Bytes& frame, unsigned workers) {
  return port::worker_of(frame, static_cast<std::uint32_t>(frame.size()), LinkType::ethernet, workers);
}

/// The network at the chain's port: a server outside answers each packet to the port that it came from, and the answer
/// comes to the worker that the flow hash says.
class Network {
 public:
  Network(unsigned workers, unsigned flows, unsigned packets) : to_(workers), total_(flows * packets) {
    for (unsigned number = 0; number < total_; ++number) {
      const Bytes frame = query(number % flows, number);
      to_[worker_of(frame, workers)].queries.push_back(frame);
    }
  }

  port::RxStatus poll(unsigned worker, Batch& batch) {
    const std::lock_guard guard(lock_);
    Queues& own = to_[worker];
    for (unsigned i = 0; i < 3 && !own.queries.empty(); ++i) {
      if (!append(batch, own.queries.front())) return port::RxStatus::more;
      own.queries.pop_front();
    }
    while (!own.answers.empty()) {
      if (!append(batch, own.answers.front())) return port::RxStatus::more;
      own.answers.pop_front();
      ++answered_;
    }
    const bool is_late = std::chrono::steady_clock::now() > deadline_;
    return (own.queries.empty() && answered_ == total_) || is_late ? port::RxStatus::end : port::RxStatus::idle;
  }
  /// A packet leaves.
  void take(PacketView packet) {
    if (packet.ipv4().destination.value() != parse_ipv4(kServer)->bits) return;
    Bytes answer(packet.frame, packet.frame + packet.length());
    constexpr std::size_t kAddresses = 26, kPorts = 34;
    std::swap_ranges(answer.begin() + kAddresses, answer.begin() + kAddresses + 4, answer.begin() + kAddresses + 4);
    std::swap_ranges(answer.begin() + kPorts, answer.begin() + kPorts + 2, answer.begin() + kPorts + 2);
    const std::lock_guard guard(lock_);
    to_[worker_of(answer, static_cast<unsigned>(to_.size()))].answers.push_back(std::move(answer));
  }

 private:
  struct Queues {
    std::deque<Bytes> queries, answers;
  };
  std::mutex lock_;
  std::vector<Queues> to_;  // by worker
  const unsigned total_;
  unsigned answered_ = 0;
  const std::chrono::steady_clock::time_point deadline_ = std::chrono::steady_clock::now() + std::chrono::seconds{60};
};

struct NatChain : FakeChain {
  NatChain(unsigned workers, FakePort::Poll poll) {
    settings.workers = workers;
    settings.batch_packets = 64;
    in = &add_source("in", std::move(poll));
    out = &add_sink("out");
    functions.push_back({"masquerades", std::make_unique<Masquerading>()});
  }
  FakePort *in, *out;
};

TEST(HandOver, TakesAnswersToTheWorkersOfTheirConnections) {
  constexpr unsigned kWorkers = 4, kFlows = 40;
  const unsigned packets = penstock::testing::rounds(300);
  Network network(kWorkers, kFlows, packets);
  NatChain chain(kWorkers, [&](unsigned worker, Batch& batch) { return network.poll(worker, batch); });
  chain.out->refuses = [&](PacketView packet) {
    network.take(packet);
    return false;
  };
  const std::atomic<bool> never{false};
  const auto result = run(chain, {}, never);
  ASSERT_TRUE(result) << to_string(result.error());
  const report::RunReport& report = result->report;
  EXPECT_EQ(report.in.packets, 2 * kFlows * packets);
  EXPECT_EQ(report.forwarded.packets, 2 * kFlows * packets) << "each of them once, whichever worker has done it";
  EXPECT_EQ(report.ports[0].in.packets, 2 * kFlows * packets);
  ASSERT_TRUE(report.handed_over);
  EXPECT_GT(report.handed_over->packets, packets) << "most answers come to other workers";
  EXPECT_GT(report.handed_over->bytes, packets * 50);

  struct Seen {
    unsigned worker = 0;
    std::vector<std::uint64_t> queries, answers;
    std::set<std::uint16_t> public_ports;
  };
  std::map<unsigned, Seen> flows;
  for (unsigned worker = 0; worker < kWorkers; ++worker) {
    for (FakePort::Sent& sent : chain.out->sent[worker]) {
      const PacketView packet{sent.bytes.data(), &sent.descriptor};
      const auto number = number_of(sent.bytes);
      Seen& seen = flows[static_cast<unsigned>(number % kFlows)];
      if (seen.queries.empty() && seen.answers.empty()) seen.worker = worker;
      EXPECT_EQ(seen.worker, worker) << "both directions leave by one worker";
      const bool is_query = packet.ipv4().destination.value() == parse_ipv4(kServer)->bits;
      if (is_query) seen.public_ports.insert(static_cast<std::uint16_t>(sent.bytes[34] << 8 | sent.bytes[35]));
      (is_query ? seen.queries : seen.answers).push_back(number);
      if (!is_query) {
        EXPECT_EQ(packet.ipv4().destination.value(), parse_ipv4("10.0.0.1")->bits + number % kFlows);
        EXPECT_EQ(sent.bytes[36] << 8 | sent.bytes[37], 1000 + static_cast<int>(number % kFlows % 5));
      }
    }
  }
  ASSERT_EQ(flows.size(), kFlows);
  std::set<std::uint16_t> ports;
  for (const auto& [flow, seen] : flows) {
    EXPECT_EQ(seen.queries.size(), packets);
    EXPECT_TRUE(std::ranges::is_sorted(seen.queries));
    EXPECT_EQ(seen.answers, seen.queries) << "in order";
    ASSERT_EQ(seen.public_ports.size(), 1U);
    EXPECT_TRUE(ports.insert(*seen.public_ports.begin()).second) << "two connections have the same port";
  }
}

TEST(HandOver, EndsWhenARunIsStoppedWithPacketsOnTheirWay) {
  constexpr unsigned kWorkers = 3;
  Network network(kWorkers, 40, penstock::testing::rounds(3000));
  std::atomic<bool> stop{false};
  std::atomic<unsigned> left{0};
  NatChain chain(kWorkers, [&](unsigned worker, Batch& batch) { return network.poll(worker, batch); });
  chain.out->refuses = [&](PacketView packet) {
    network.take(packet);
    if (++left == 500) stop = true;
    return false;
  };
  const auto result = run(chain, {}, stop);
  ASSERT_TRUE(result) << to_string(result.error());
  const report::RunReport& report = result->report;
  EXPECT_EQ(report.in.packets, report.forwarded.packets + report.dropped.packets);
  EXPECT_EQ(report.forwarded.packets,
            chain.out->sent[0].size() + chain.out->sent[1].size() + chain.out->sent[2].size());
}

struct OwnBatch {
  std::vector<std::uint8_t> bytes = std::vector<std::uint8_t>(1 << 20);
  std::vector<PacketDescriptor> descriptors = std::vector<PacketDescriptor>(512);
  Batch batch{bytes, descriptors, {}};
};

TEST(HandOver, KeepsWhatIsKnownOfAPacket) {
  HandOver hand_over(2, 10);
  OwnBatch from, to;
  const Bytes frame = numbered(7);
  ASSERT_TRUE(from.batch.append(frame, {123, 99, 5, LinkType::raw_ip, 42}));
  EXPECT_EQ(hand_over.inbox(1).poll(to.batch), port::RxStatus::idle);
  ASSERT_TRUE(hand_over.give(0, 1, from.batch.view(0)));
  EXPECT_EQ(hand_over.inbox(0).poll(to.batch), port::RxStatus::idle);
  EXPECT_EQ(to.batch.size(), 0U) << "for another worker";
  EXPECT_EQ(hand_over.inbox(1).poll(to.batch), port::RxStatus::idle);
  ASSERT_EQ(to.batch.size(), 1U);
  const PacketDescriptor& descriptor = to.batch.packets()[0];
  EXPECT_EQ(Bytes(to.batch.view(0).frame, to.batch.view(0).frame + descriptor.length), frame);
  EXPECT_EQ(descriptor.timestamp_ns, 123U);
  EXPECT_EQ(descriptor.wire_length, 99U);
  EXPECT_EQ(descriptor.in_port, 5U);
  EXPECT_EQ(descriptor.link_type, LinkType::raw_ip);
  EXPECT_EQ(descriptor.number, 42U);
}

TEST(HandOver, WakesAWorkerThatSleeps) {
  HandOver hand_over(2, 10);
  OwnBatch from, to;
  ASSERT_TRUE(append(from.batch, numbered(1)));
  std::vector<pollfd> waits;
  ASSERT_TRUE(hand_over.inbox(1).add_wake_ups(waits));
  EXPECT_EQ(::poll(waits.data(), 1, 0), 0);
  ASSERT_TRUE(hand_over.give(0, 1, from.batch.view(0)));
  hand_over.wake_others(0);
  EXPECT_EQ(::poll(waits.data(), 1, 0), 1);
  static_cast<void>(hand_over.inbox(1).poll(to.batch));
  EXPECT_EQ(::poll(waits.data(), 1, 0), 0);
}

TEST(HandOver, IsOverWhenAllWorkersAreAndNothingIsOnItsWay) {
  HandOver hand_over(2, 10);
  OwnBatch from, to;
  ASSERT_TRUE(append(from.batch, numbered(1)));
  EXPECT_FALSE(hand_over.is_over(1));
  ASSERT_TRUE(hand_over.give(0, 1, from.batch.view(0)));
  EXPECT_FALSE(hand_over.is_over(0));
  EXPECT_FALSE(hand_over.is_over(1));
  static_cast<void>(hand_over.inbox(1).poll(to.batch));
  EXPECT_FALSE(hand_over.is_over(0)) << "it is not done yet";
  EXPECT_TRUE(hand_over.is_over(1));
  EXPECT_TRUE(hand_over.is_over(0));
}

TEST(HandOver, DropsWhatDoesNotFitInARing) {
  NatChain chain(2, [](unsigned, Batch&) { return port::RxStatus::end; });
  chain.open();
  HandOver hand_over(2, 100);
  WorkerCounters counters(chain);
  CpuExecutor executor(chain, 0, counters, nullptr, &hand_over);
  executor.begin();
  // As if worker 1 had the connection of all of them.
  const Bytes frame = query(1, 1);
  const conntrack::Tuple tuple{.source = {0, parse_ipv4("10.0.0.2")->bits},
                               .destination = {0, parse_ipv4(kServer)->bits},
                               .source_port = 1001,
                               .destination_port = 53,
                               .protocol = ip_protocol::kUdp,
                               .ip_version = 4};
  ASSERT_TRUE(conntrack::TupleOwners::is_entered(hand_over.owners()->enter(tuple, 1)));
  OwnBatch batch;
  std::uint64_t all = 0;
  for (unsigned i = 0; i < 100; ++i) {
    batch.batch.reset(static_cast<std::uint32_t>(all));
    while (append(batch.batch, frame)) ++all;
    ASSERT_TRUE(executor.submit(batch.batch));
    ASSERT_NE(executor.retire(), nullptr);
  }
  const report::Traffic& full = counters.dropped_by_chain[static_cast<std::size_t>(ChainDrop::hand_over_full)];
  EXPECT_GT(counters.handed_over.packets.get(), 1000U);
  EXPECT_GT(full.packets.get(), 1000U);
  EXPECT_EQ(counters.handed_over.packets.get() + full.packets.get(), all);
  EXPECT_EQ(counters.handed_over.bytes.get() + full.bytes.get(), all * frame.size());
  EXPECT_EQ(counters.functions[0].in.packets.get(), 0U) << "no function has seen them";
  OwnBatch taken;
  std::uint64_t packets = 0;
  port::RxStatus status = port::RxStatus::more;
  while (status == port::RxStatus::more) {
    taken.batch.reset(0);
    status = hand_over.inbox(1).poll(taken.batch);
    packets += taken.batch.size();
  }
  EXPECT_EQ(packets, counters.handed_over.packets.get());
}

/// Each of two workers remembers that the other one got the first fragment of a datagram, of which two came. The
/// fragments that follow must not go to and fro.
TEST(HandOver, PacketsDoNotGoRound) {
  const Bytes datagram = packet().eth().ipv4("10.0.0.2", kServer).udp(1001, 53).payload(std::string(100, 'x')).bytes();
  const Bytes other = packet().eth().ipv4("10.0.0.2", kServer).udp(1002, 53).payload(std::string(100, 'x')).bytes();
  const std::vector<Bytes> fragments = penstock::testing::fragments_of(datagram, {48}, 7);
  const std::vector<Bytes> others = penstock::testing::fragments_of(other, {48}, 7);
  NatChain chain(2, [](unsigned, Batch&) { return port::RxStatus::end; });
  chain.open();
  HandOver hand_over(2, 100);
  std::array<std::unique_ptr<WorkerCounters>, 2> counters;
  std::array<std::unique_ptr<CpuExecutor>, 2> executors;
  for (unsigned worker = 0; worker < 2; ++worker) {
    counters[worker] = std::make_unique<WorkerCounters>(chain);
    executors[worker] = std::make_unique<CpuExecutor>(chain, worker, *counters[worker], nullptr, &hand_over);
    executors[worker]->begin();
    // As if they were of connections that have just ended, or of segments that are not valid there.
    const conntrack::Tuple tuple{.source = {0, parse_ipv4("10.0.0.2")->bits},
                                 .destination = {0, parse_ipv4(kServer)->bits},
                                 .source_port = static_cast<std::uint16_t>(1001 + worker),
                                 .destination_port = 53,
                                 .protocol = ip_protocol::kUdp,
                                 .ip_version = 4};
    ASSERT_TRUE(conntrack::TupleOwners::is_entered(hand_over.owners()->enter(tuple, 1 - worker)));
  }
  const auto take = [&](unsigned worker, const Bytes* frame) {
    OwnBatch batch;
    if (frame != nullptr) {
      EXPECT_TRUE(append(batch.batch, *frame));
    } else {
      static_cast<void>(hand_over.inbox(worker).poll(batch.batch));
    }
    const std::size_t size = batch.batch.size();
    EXPECT_TRUE(executors[worker]->submit(batch.batch));
    EXPECT_NE(executors[worker]->retire(), nullptr);
    return size;
  };
  take(0, &fragments[0]);
  take(1, &others[0]);
  EXPECT_EQ(take(1, nullptr), 1U);
  EXPECT_EQ(take(0, nullptr), 1U);
  EXPECT_EQ(counters[0]->handed_over.packets.get() + counters[1]->handed_over.packets.get(), 2U);
  take(0, &fragments[1]);
  EXPECT_EQ(take(1, nullptr), 1U);
  EXPECT_EQ(take(0, nullptr), 0U) << "it comes back";
  EXPECT_EQ(counters[0]->handed_over.packets.get() + counters[1]->handed_over.packets.get(), 3U);
  EXPECT_EQ(counters[1]->functions[0].in.packets.get(), 2U) << "the functions have seen it";
}

TEST(HandOver, ThereIsNoneWithOneWorkerOrWithoutConnectionsToShare) {
  NatChain chain(2, [](unsigned, Batch&) { return port::RxStatus::end; });
  EXPECT_TRUE(hands_over(chain));
  EXPECT_NE(make_hand_over(chain), nullptr);
  chain.settings.workers = 1;
  EXPECT_EQ(make_hand_over(chain), nullptr);
  FakeChain other;
  other.settings.workers = 2;
  other.add_function("other", [](std::span<PacketView>) {});
  EXPECT_FALSE(hands_over(other));
}

}  // namespace
}  // namespace penstock::run
