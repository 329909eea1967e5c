// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "run/worker.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <functional>
#include <numeric>

#include "run/testing/fakes.h"

namespace penstock::run {
namespace {

using namespace std::chrono_literals;
using port::RxStatus;
using testing::FakeChain;
using testing::FakePort;
using testing::numbered_frames;
using testing::script;

constexpr int kPatience = 50'000'000;  // polls, so that a broken worker fails a test instead of hanging it

std::vector<std::uint64_t> numbers(std::uint64_t count) {
  std::vector<std::uint64_t> all(count);
  std::iota(all.begin(), all.end(), 0);
  return all;
}

std::uint64_t get(const report::Counter& counter) { return counter.get(); }
std::uint64_t dropped(const WorkerCounters& counters, ChainDrop reason) {
  return counters.dropped_by_chain[static_cast<std::size_t>(reason)].packets.get();
}

/// Runs a chain with one worker to its end.
struct Finished {
  explicit Finished(FakeChain& chain) {
    chain.open();
    worker = std::make_unique<Worker>(chain, memory, 0, nullptr);
    worker->begin();
    worker->run(stop);
  }
  const WorkerCounters& counters() const { return worker->counters(); }

  std::atomic<bool> stop{false};
  PacketMemory memory;
  std::unique_ptr<Worker> worker;
};

TEST(Worker, ClosesABatchWithTheMaximumNumberOfPackets) {
  FakeChain chain;
  chain.add_source("in", script({numbered_frames(10)}));
  FakePort& out = chain.add_sink("out");
  chain.settings.batch_packets = 4;
  chain.settings.batch_timeout = 10s;
  const Finished run(chain);
  EXPECT_EQ(get(run.counters().batches), 3U);
  EXPECT_EQ(get(run.counters().closed_by_size), 2U);
  EXPECT_EQ(get(run.counters().closed_by_end), 1U);
  EXPECT_EQ(get(run.counters().batch_fill_permille), 1000U + 1000U + 500U);
  EXPECT_EQ(out.numbers(), numbers(10));
}

TEST(Worker, ClosesABatchWithTheMaximumNumberOfBytes) {
  FakeChain chain;
  chain.add_source("in", script({std::vector<testing::Bytes>(5, testing::numbered(7))}));
  chain.add_sink("out");
  chain.settings.batch_bytes = 2 * aligned_frame(testing::numbered(7).size()) + 1;
  chain.settings.queue_bytes = 8 * chain.settings.batch_bytes;
  chain.settings.batch_timeout = 10s;
  const Finished run(chain);
  EXPECT_EQ(get(run.counters().closed_by_size), 2U);
  EXPECT_EQ(get(run.counters().batches), 3U);
}

TEST(Worker, MapsNoQueueIfAllItsSourcesCanWait) {
  FakeChain chain;
  chain.add_source("in", script({numbered_frames(10)}));
  FakePort& out = chain.add_sink("out");
  chain.settings.queue_bytes = std::size_t{1} << 50;  // more than the address space
  const Finished run(chain);
  EXPECT_EQ(out.numbers(), numbers(10));
}

TEST(Worker, ClosesABatchWhoseTimeIsOver) {
  FakeChain chain;
  FakePort* out = nullptr;
  int polls = 0;
  chain.add_source("in", [&](unsigned, Batch& batch) {
    if (++polls <= 3) testing::append(batch, testing::numbered(static_cast<std::uint64_t>(polls - 1)));
    // No more packets arrive until these have left.
    return out->sent[0].size() == 3 || polls == kPatience ? RxStatus::end : RxStatus::idle;
  });
  out = &chain.add_sink("out");
  chain.settings.batch_timeout = 1ms;
  const Finished run(chain);
  ASSERT_LT(polls, kPatience);
  EXPECT_EQ(out->numbers(), numbers(3));
  EXPECT_GE(get(run.counters().closed_by_time), 1U);
  EXPECT_EQ(get(run.counters().closed_by_end), 0U);
}

TEST(Worker, ClosesABatchEarlyIfInterfacesAreQuietAndItMay) {
  for (const bool closes_early : {true, false}) {
    FakeChain chain;
    chain.add_source("in", script({numbered_frames(2), {}, {}, numbered_frames(2, 2), {}, {}})).wakes = true;
    chain.add_sink("out");
    chain.settings.batch_timeout = 1h;
    chain.settings.closes_early = closes_early;
    const Finished run(chain);
    EXPECT_EQ(get(run.counters().batches), closes_early ? 2U : 1U);
    EXPECT_EQ(get(run.counters().closed_by_idleness), closes_early ? 2U : 0U);
  }
}

TEST(Worker, LeavesABatchOpenWhileThereIsTime) {
  FakeChain chain;
  chain.add_source("in", script({numbered_frames(1), {}, {}, numbered_frames(1, 1), {}, {}, {}, {}}));
  chain.add_sink("out");
  chain.settings.batch_timeout = 1h;
  const Finished run(chain);
  EXPECT_EQ(get(run.counters().batches), 1U);
  EXPECT_EQ(get(run.counters().closed_by_end), 1U);
}

TEST(Worker, CountsTheLatencyOfEveryReceivedPacket) {
  FakeChain chain;
  std::vector<std::vector<testing::Bytes>> one_by_one;  // more polls than a batch stores times for
  for (std::uint64_t i = 0; i < 300; ++i) one_by_one.push_back({testing::numbered(i)});
  chain.add_source("in", script(one_by_one));
  chain.add_sink("out");
  chain.add_function("half", testing::each([](PacketView packet) {
                       return testing::number_of(packet) % 2 == 0 ? Verdict::forward() : Verdict::consume();
                     }));
  chain.settings.batch_timeout = 1h;
  const Finished run(chain);
  EXPECT_EQ(get(run.counters().batches), 1U);
  EXPECT_EQ(run.counters().latency.count(), 300U);
}

/// The latency of a packet that is stamped before `wait` and polled after it.
///
///     run's start ──▶ stamp + `shift` ── wait ──▶ poll ──▶ sent
///
std::chrono::nanoseconds latency_of_a_packet(std::optional<std::chrono::nanoseconds> to_clock,
                                             std::chrono::nanoseconds shift) {
  FakeChain chain;
  std::optional<Batch::Clock::time_point> arrived;
  FakePort& in = chain.add_source("in", [&](unsigned, Batch& batch) {
    if (!arrived) arrived = Batch::Clock::now();
    if (Batch::Clock::now() - *arrived < 20ms) return RxStatus::idle;
    const auto stamp = static_cast<std::uint64_t>((arrived->time_since_epoch() + 1h + shift).count());
    const testing::Bytes frame = testing::numbered(0);
    EXPECT_TRUE(batch.append(frame, {stamp, static_cast<std::uint32_t>(frame.size()), 0, LinkType::ethernet}));
    return RxStatus::end;
  });
  in.arrivals_to_clock = to_clock;
  chain.add_sink("out");
  const Finished run(chain);
  EXPECT_EQ(run.counters().latency.count(), 1U);
  return run.counters().latency.quantile(1);
}

TEST(Worker, CountsLatencyFromTheArrivalIfThePortKnowsIt) {
  EXPECT_GE(latency_of_a_packet(-1h, 0ms), 20ms) << "not from the poll";
  EXPECT_LT(latency_of_a_packet(-1h, -2h), 1h) << "a packet of an old recording counts from the poll";
  EXPECT_GT(latency_of_a_packet(-1h, 2h), 0ms) << "so does one whose time is yet to come";
  EXPECT_GT(latency_of_a_packet(std::nullopt, 0ms), 0ms);
}

/// Two batches of one packet. The second one is polled 20 ms after the first has left, and has arrived by its timestamp
/// at `arrival(first poll, second poll)`.
struct TwoBatches {
  using Time = Batch::Clock::time_point;

  explicit TwoBatches(const std::function<Time(Time, Time)>& arrival) {
    FakeChain chain;
    FakePort* out = nullptr;
    Time first, left, second;
    const auto receive = [](Batch& batch, Time at) {
      const auto stamp = static_cast<std::uint64_t>(at.time_since_epoch().count());
      const testing::Bytes frame = testing::numbered(0);
      EXPECT_TRUE(batch.append(frame, {stamp, static_cast<std::uint32_t>(frame.size()), 0, LinkType::ethernet}));
    };
    int polls = 0;
    FakePort& in = chain.add_source("in", [&](unsigned, Batch& batch) {
      const Time now = Batch::Clock::now();
      if (++polls == 1) receive(batch, first = now);
      if (out->sent[0].empty()) return polls < kPatience ? RxStatus::idle : RxStatus::end;
      if (left == Time{}) left = now;
      if (now - left < 20ms) return RxStatus::idle;
      receive(batch, arrival(first, second = now));
      return RxStatus::end;
    });
    in.arrivals_to_clock = 0ns;
    out = &chain.add_sink("out");
    chain.settings.batch_timeout = 0ns;
    const Finished run(chain);
    EXPECT_EQ(run.counters().gaps.count(), 2U);
    longest = run.counters().gaps.quantile(1);
    with_packets = (left - first) + (Batch::Clock::now() - second);
  }

  std::chrono::nanoseconds longest;       // gap
  std::chrono::nanoseconds with_packets;  // from the polls to when the batches had left
};

TEST(Worker, CountsAGapFromWhenItHadPackets) {
  using Time = TwoBatches::Time;
  const TwoBatches at_once([](Time, Time poll) { return poll; });
  EXPECT_LE(at_once.longest, at_once.with_packets * 65 / 64) << "the time without packets is no gap";
  EXPECT_GE(TwoBatches([](Time, Time poll) { return poll - 10ms; }).longest, 10ms) << "the packet was there";
  EXPECT_GE(TwoBatches([](Time first, Time) { return first; }).longest, 20ms) << "since the first batch left";
}

TEST(Worker, CountsArrivalsOfMorePollsThanABatchStoresTimesFor) {
  FakeChain chain;
  std::vector<std::vector<testing::Bytes>> one_by_one;
  for (std::uint64_t i = 0; i < 300; ++i) one_by_one.push_back({testing::numbered(i)});
  chain.add_source("in", script(one_by_one)).arrivals_to_clock = 0ns;
  chain.add_sink("out");
  chain.settings.batch_timeout = 1h;
  const Finished run(chain);
  EXPECT_EQ(run.counters().latency.count(), 300U);
}

TEST(Worker, PassesABatchBoundaryBeforeEachBatch) {
  FakeChain chain;
  chain.add_source("in", script({numbered_frames(9)}));
  chain.add_sink("out");
  std::vector<int> boundaries_seen;
  auto& function = chain.add_function("boundaries", {});
  function.process = [&](std::span<PacketView>) { boundaries_seen.push_back(function.boundaries); };
  chain.settings.batch_packets = 3;
  const Finished run(chain);
  ASSERT_EQ(boundaries_seen.size(), 3U);
  EXPECT_GE(boundaries_seen[0], 1);
  EXPECT_GT(boundaries_seen[1], boundaries_seen[0]);
  EXPECT_GT(boundaries_seen[2], boundaries_seen[1]);
}

TEST(Worker, PassesBatchBoundariesWhenNoPacketsCome) {
  FakeChain chain;
  auto& function = chain.add_function("boundaries", [](std::span<PacketView>) {});
  int polls = 0;
  chain.add_source("in", [&](unsigned, Batch&) {
    return function.boundaries >= 5 || ++polls == kPatience ? RxStatus::end : RxStatus::idle;
  });
  const Finished run(chain);
  EXPECT_LT(polls, kPatience);
  EXPECT_EQ(get(run.counters().batches), 0U);
}

//   poll:   0 1 2 │ copy of 9 │ 3 4
TEST(Worker, ShowsACopyInItsPlaceWithoutCountingOrSendingIt) {
  FakeChain chain;
  int polls = 0;
  chain.add_source("in", [&](unsigned, Batch& batch) {
    switch (polls++) {
      case 0:
        for (std::uint64_t i = 0; i < 3; ++i) EXPECT_TRUE(testing::append(batch, testing::numbered(i)));
        return RxStatus::more;
      case 1:
        EXPECT_TRUE(batch.empty());
        EXPECT_TRUE(testing::append(batch, testing::numbered(9)));
        return RxStatus::copy;
      default:
        EXPECT_TRUE(batch.empty());
        for (std::uint64_t i = 3; i < 5; ++i) EXPECT_TRUE(testing::append(batch, testing::numbered(i)));
        return RxStatus::end;
    }
  });
  FakePort& out = chain.add_sink("out");
  std::vector<std::uint64_t> seen;
  chain
      .add_function("watch", testing::each([&](PacketView packet) {
                      seen.push_back(testing::number_of(packet));
                      return Verdict::forward();
                    }))
      .observe = [&](PacketView packet) { seen.push_back(100 + testing::number_of(packet)); };
  const Finished run(chain);
  EXPECT_EQ(seen, (std::vector<std::uint64_t>{0, 1, 2, 109, 3, 4}));
  EXPECT_EQ(out.numbers(), numbers(5));
  EXPECT_EQ(get(run.counters().in.packets), 5U);
}

TEST(Worker, ReturnsAtOnceIfAllSourcesHaveEnded) {
  FakeChain chain;
  chain.add_source("a", [](unsigned, Batch&) { return RxStatus::end; });
  chain.add_source("b", [](unsigned, Batch&) { return RxStatus::end; });
  const Finished run(chain);
  EXPECT_EQ(get(run.counters().batches), 0U);
  EXPECT_EQ(get(run.counters().in.packets), 0U);
}

TEST(Worker, ContinuesWithTheOtherSourcesAfterOneEnds) {
  FakeChain chain;
  chain.add_source("a", script({numbered_frames(5)}));
  chain.add_source("b", script({numbered_frames(3, 5), {}, {}, numbered_frames(4, 8)}, 1));
  FakePort& out = chain.add_sink("out");
  const Finished run(chain);
  EXPECT_EQ(out.numbers(), numbers(12));
  EXPECT_EQ(get(run.counters().port_in[0].packets), 5U);
  EXPECT_EQ(get(run.counters().port_in[1].packets), 7U);
}

/// Each of three sources fills a batch while one is being processed, so the waiting queue is full at the third.
struct ThreeSources {
  static constexpr std::uint64_t kEach = 400;
  static constexpr std::size_t kBatch = 10;
  explicit ThreeSources(std::vector<bool> waits) {
    for (PortIndex i = 0; i < 3; ++i) {
      chain.add_source("in" + std::to_string(i), script({numbered_frames(kEach, i * kEach)}, i)).waits = waits[i];
    }
    out = &chain.add_sink("out");
    chain.settings.batch_packets = kBatch;
    chain.settings.batch_bytes = 64 << 10;
    chain.settings.queue_bytes = 1000;  // the frames of two batches
    chain.settings.batch_timeout = 10s;
  }
  FakeChain chain;
  FakePort* out = nullptr;
};

TEST(Worker, DropsAndCountsWhatTheWaitingQueueCannotHold) {
  ThreeSources sources({false, false, false});
  const Finished run(sources.chain);
  const WorkerCounters& counters = run.counters();
  const auto& full = counters.dropped_by_chain[static_cast<std::size_t>(ChainDrop::queue_full)];
  EXPECT_GT(get(full.packets), 0U);
  EXPECT_GT(get(counters.forwarded.packets), 0U);
  EXPECT_EQ(get(counters.in.packets), 3 * ThreeSources::kEach);
  EXPECT_EQ(get(counters.in.packets), get(counters.forwarded.packets) + get(full.packets));
  EXPECT_EQ(get(counters.in.bytes), testing::bytes_of(numbered_frames(3 * ThreeSources::kEach)));
  EXPECT_EQ(get(counters.in.bytes), get(counters.forwarded.bytes) + get(full.bytes));
  EXPECT_EQ(sources.out->sent[0].size(), get(counters.forwarded.packets));
  EXPECT_EQ(sources.out->sent_bytes(), get(counters.forwarded.bytes));
  auto numbers = sources.out->numbers();
  std::sort(numbers.begin(), numbers.end());
  EXPECT_EQ(std::adjacent_find(numbers.begin(), numbers.end()), numbers.end()) << "twice";
}

TEST(Worker, DropsWhatASingleSourceOffersBeyondTheWaitingQueue) {
  FakeChain chain;
  chain.add_source("in", script({numbered_frames(1000)})).waits = false;
  FakePort& out = chain.add_sink("out");
  chain.settings.batch_packets = 10;
  chain.settings.batch_bytes = 64 << 10;
  chain.settings.queue_bytes = 2000;  // reached by three batches, with 640, 720 and 800 bytes in the ring
  const Finished run(chain);
  // All 1000 packets are available at once.
  const std::uint64_t lost = dropped(run.counters(), ChainDrop::queue_full);
  EXPECT_GT(lost, 500U);
  EXPECT_EQ(get(run.counters().forwarded.packets) + lost, 1000U);
  auto first = out.numbers();
  ASSERT_GE(first.size(), 31U);
  EXPECT_EQ(first[29], 29U);
  EXPECT_GT(first[30], 100U) << "the queue was full, and what came was dropped";
}

TEST(Worker, ReceivesNothingFromSourcesThatCanWaitWhileBatchesWait) {
  FakeChain chain;
  chain.settings.batch_packets = 10;
  std::uint64_t taken_in = 0;
  std::uint64_t done = 0;
  std::uint64_t most = 0;
  for (int i = 0; i < 3; ++i) {
    chain.add_source("in" + std::to_string(i), [&, left = 1000](unsigned, Batch& batch) mutable {
      for (; left > 0; --left, ++taken_in) {
        if (!testing::append(batch, testing::numbered(taken_in))) return RxStatus::more;
        most = std::max(most, taken_in + 1 - done);
      }
      return RxStatus::end;
    });
  }
  chain.add_sink("out");
  chain.add_function("counts", [&](std::span<PacketView> packets) { done += packets.size(); });
  const Finished run(chain);
  EXPECT_EQ(done, 3000U);
  EXPECT_LE(most, 20U) << "one batch that waits, and one that is filled";
}

TEST(Worker, LosesNothingFromASourceThatCanWait) {
  ThreeSources sources({true, false, true});
  const Finished run(sources.chain);
  const auto numbers = sources.out->numbers();
  const auto of_source = [&](std::uint64_t i) {
    return std::count_if(numbers.begin(), numbers.end(), [&](auto n) { return n / ThreeSources::kEach == i; });
  };
  EXPECT_EQ(of_source(0), static_cast<int>(ThreeSources::kEach));
  EXPECT_EQ(of_source(2), static_cast<int>(ThreeSources::kEach));
  EXPECT_EQ(get(run.counters().port_in[1].packets), ThreeSources::kEach);
  EXPECT_EQ(3 * ThreeSources::kEach - numbers.size(), dropped(run.counters(), ChainDrop::queue_full));
}

TEST(Worker, KeepsTheOrderOfEachSource) {
  ThreeSources sources({true, true, true});
  const Finished run(sources.chain);
  std::vector<std::uint64_t> next{0, ThreeSources::kEach, 2 * ThreeSources::kEach};
  for (const std::uint64_t number : sources.out->numbers()) {
    ASSERT_EQ(number, next[number / ThreeSources::kEach]);
    ++next[number / ThreeSources::kEach];
  }
  EXPECT_EQ(next.back(), 3 * ThreeSources::kEach);
}

TEST(Worker, StarvesNoSource) {
  FakeChain chain;
  std::atomic<bool> stop{false};
  const auto endless = [](PortIndex index) {
    return [index](unsigned, Batch& batch) {
      while (testing::append(batch, testing::numbered(index), index)) {
      }
      return RxStatus::more;
    };
  };
  for (PortIndex i = 0; i < 3; ++i) chain.add_source("in" + std::to_string(i), endless(i));
  chain.add_sink("out").refuses = [&, sent = 0](PacketView) mutable {
    if (++sent == 500) stop = true;
    return false;
  };
  chain.settings.batch_packets = 5;
  chain.settings.batch_bytes = chain.settings.queue_bytes = 64 << 10;  // one batch waits: one source at a time
  chain.open();
  const PacketMemory memory;
  Worker worker(chain, memory, 0, nullptr);
  worker.begin();
  worker.run(stop);
  for (PortIndex i = 0; i < 3; ++i) EXPECT_GT(get(worker.counters().port_in[i].packets), 50U) << "source " << i;
}

TEST(Worker, FinishesReceivedPacketsWhenItIsStopped) {
  FakeChain chain;
  std::atomic<bool> stop{false};
  std::uint64_t given = 0;
  chain.add_source("in", [&](unsigned, Batch& batch) {
    for (int i = 0; i < 7; ++i) {
      if (!testing::append(batch, testing::numbered(given))) return RxStatus::more;
      ++given;
    }
    if (given > 1000) stop = true;
    return RxStatus::idle;
  });
  FakePort& out = chain.add_sink("out");
  chain.settings.batch_packets = 300;
  chain.settings.batch_timeout = 10s;
  chain.open();
  const PacketMemory memory;
  Worker worker(chain, memory, 0, nullptr);
  worker.begin();
  worker.run(stop);
  EXPECT_GT(given, 1000U);
  EXPECT_EQ(out.numbers(), numbers(given));
  EXPECT_EQ(get(worker.counters().forwarded.packets), given);
  EXPECT_EQ(get(worker.counters().closed_by_end), 1U);
}

/// A source that lends numbered frames from a few slots, and checks that it gets them back in order.
class Lender {
 public:
  static constexpr std::size_t kSlots = 40;
  static constexpr std::size_t kSlotBytes = 128;

  Lender(PacketMemory& memory, std::uint64_t frames, PortIndex port = 0) : frames_(frames), port_(port) {
    region_ = memory.add(memory_).value();
  }
  RxStatus poll(Batch& batch, std::size_t most = kSlots) {
    for (std::size_t n = 0; lent < frames_; ++lent, ++n) {
      if (lent - back == kSlots) return RxStatus::starved;
      if (n == most) return RxStatus::idle;
      const testing::Bytes frame = testing::numbered(lent);
      const std::size_t at = lent % kSlots * kSlotBytes;
      const auto length = static_cast<std::uint32_t>(frame.size());
      if (!batch.lend(region_, static_cast<std::uint32_t>(at), length, {1, length, port_, LinkType::ethernet}))
        return RxStatus::more;
      std::ranges::copy(frame, memory_.begin() + static_cast<std::ptrdiff_t>(at));
    }
    return RxStatus::end;
  }

  std::uint64_t lent = 0;
  std::uint64_t back = 0;

 private:
  const std::uint64_t frames_;
  const PortIndex port_;
  PacketMemory::Region region_ = 0;
  alignas(kFrameAlignment) std::array<std::uint8_t, kSlots * kSlotBytes> memory_{};
};

TEST(Worker, GivesLentFramesBackToTheirPorts) {
  FakeChain chain;
  PacketMemory memory;
  Lender first(memory, 1000, 0);
  Lender second(memory, 700, 1);
  chain.add_source("a", [&](unsigned, Batch& batch) { return first.poll(batch, 7); }).takes_back =
      [&](std::size_t frames) { first.back += frames; };
  chain.add_source("b", [&](unsigned, Batch& batch) { return second.poll(batch, 3); }).takes_back =
      [&](std::size_t frames) { second.back += frames; };
  chain.add_source("c", script({numbered_frames(100, 5000), numbered_frames(100, 5100)}, 2));  // copied
  FakePort& out = chain.add_sink("out");
  chain.settings.batch_packets = 16;
  chain.open();
  Worker worker(chain, memory, 0, nullptr);
  worker.begin();
  std::atomic<bool> stop{false};
  worker.run(stop);
  EXPECT_EQ(first.back, 1000U);
  EXPECT_EQ(second.back, 700U);
  std::vector<std::vector<std::uint64_t>> by_port(3);
  for (const FakePort::Sent& sent : out.sent[0])
    by_port[sent.descriptor.in_port].push_back(testing::number_of(sent.bytes));
  EXPECT_EQ(by_port[0], numbers(1000)) << "no frame was overwritten while it was lent";
  EXPECT_EQ(by_port[1], numbers(700));
  EXPECT_EQ(by_port[2].size(), 200U);
}

TEST(Worker, GivesFramesBackOnlyWhenTheyHaveLeftBySendQueues) {
  FakeChain chain;
  PacketMemory memory;
  Lender lender(memory, 500);
  std::uint64_t accepted = 0;
  std::uint64_t left = 0;
  std::uint64_t polls = 0;
  chain.add_source("in", [&](unsigned, Batch& batch) { return lender.poll(batch); }).takes_back =
      [&](std::size_t frames) {
        lender.back += frames;
        EXPECT_LE(lender.back, left);
      };
  FakePort& out = chain.add_sink("out");
  out.refuses = [&](PacketView) { return ++accepted, false; };
  out.departures = [&] {
    if (++polls % 50 == 0) left = std::min(left + 3, accepted);
    return port::Departures{accepted, left};
  };
  chain.settings.batch_packets = 8;
  chain.open();
  Worker worker(chain, memory, 0, nullptr);
  worker.begin();
  std::atomic<bool> stop{false};
  worker.run(stop);
  EXPECT_EQ(left, 500U) << "it ends when all packets have left";
  EXPECT_EQ(lender.back, 500U);
  EXPECT_EQ(out.numbers(), numbers(500));
}

TEST(Worker, ClosesTheBatchOfASourceThatHasNoMemoryLeft) {
  FakeChain chain;
  PacketMemory memory;
  Lender lender(memory, 500);
  chain.add_source("in", [&](unsigned, Batch& batch) { return lender.poll(batch); }).takes_back =
      [&](std::size_t frames) { lender.back += frames; };
  FakePort& out = chain.add_sink("out");
  chain.settings.batch_packets = 5000;
  chain.settings.batch_bytes = std::size_t{1} << 20;
  chain.settings.batch_timeout = std::chrono::hours{1};  // the test would never end
  chain.open();
  Worker worker(chain, memory, 0, nullptr);
  worker.begin();
  std::atomic<bool> stop{false};
  worker.run(stop);
  EXPECT_EQ(out.numbers(), numbers(500));
}

TEST(Worker, DropsPacketsForWhichItsPortHasNoMemoryIfTheyCannotWait) {
  FakeChain chain;
  PacketMemory memory;
  Lender lender(memory, 1'000'000);
  std::atomic<bool> stop{false};
  FakePort& in = chain.add_source("in", [&](unsigned, Batch& batch) {
    if (batch.lent_memory() == nullptr) {  // to be discarded
      EXPECT_TRUE(testing::append(batch, testing::numbered(0)));
      stop = true;
      return RxStatus::idle;
    }
    return lender.poll(batch);
  });
  in.waits = false;
  FakePort& out = chain.add_sink("out");
  out.departures = [&] { return port::Departures{1, stop ? 1U : 0U}; };  // nothing leaves until the run ends
  chain.settings.batch_packets = 8;
  chain.open();
  Worker worker(chain, memory, 0, nullptr);
  worker.begin();
  worker.run(stop);
  EXPECT_EQ(get(worker.counters().forwarded.packets), Lender::kSlots);
  EXPECT_EQ(dropped(worker.counters(), ChainDrop::queue_full), 1U);
  EXPECT_EQ(get(worker.counters().in.packets), Lender::kSlots + 1);
}

TEST(Worker, NumbersItsPacketsInTheOrderOfArrival) {
  FakeChain chain;
  chain.add_source("in", script({numbered_frames(100)}));
  FakePort& out = chain.add_sink("out");
  chain.settings.batch_packets = 7;
  const Finished run(chain);
  for (std::size_t i = 0; i < 100; ++i) EXPECT_EQ(out.sent[0][i].descriptor.sequence, i);
}

}  // namespace
}  // namespace penstock::run
