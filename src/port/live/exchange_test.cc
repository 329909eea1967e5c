// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "port/live/exchange.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>

#include <algorithm>
#include <atomic>
#include <barrier>
#include <map>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "base/testing/rounds.h"
#include "packet/testing/fragments.h"
#include "packet/testing/packet_builder.h"
#include "port/testing/port_harness.h"
#include "port/worker_of.h"

namespace penstock::port {
namespace {

using penstock::testing::fragments_of;
using penstock::testing::packet;
using testing::OwnBatch;
using Frame = std::vector<std::uint8_t>;

/// Frames are told apart by their timestamps.
struct Numbered {
  Frame bytes;
  std::uint64_t number = 0;
  unsigned worker = 0;  // where it belongs

  [[nodiscard]] CapturedFrame captured() const {
    return {bytes, number, static_cast<std::uint32_t>(bytes.size()), LinkType::ethernet, 0, false};
  }
};

/// Flows with packets, fragments and frames that are not IP. `cut`: some datagrams lack their first fragment.
std::vector<Numbered> make_traffic(unsigned workers, unsigned flows, bool cut, std::uint64_t& number) {
  std::vector<Numbered> frames;
  const auto add = [&](Frame bytes, unsigned worker) { frames.push_back({std::move(bytes), ++number, worker}); };
  const auto worker = [&](const Frame& frame) {
    return worker_of(frame, static_cast<std::uint32_t>(frame.size()), LinkType::ethernet, workers);
  };
  for (unsigned flow = 0; flow < flows; ++flow) {
    const auto port = static_cast<std::uint16_t>(1024 + flow);
    const std::string host = std::to_string(flow % 251);
    const Frame udp4 =
        packet().eth().ipv4("10.0.0." + host, "10.1.0.1").udp(port, 53).payload(std::string(100, 'x')).bytes();
    const Frame tcp6 = packet().eth().ipv6("fd00::" + host, "fd01::1").tcp(port, 80).payload("y").bytes();
    const Frame arp = packet().eth().ether_type(ether_type::kArp).payload(std::string(28, '\0')).bytes();
    add(udp4, worker(udp4));
    add(tcp6, worker(tcp6));
    add(arp, 0);
    auto fragments = fragments_of(udp4, {40, 80}, static_cast<std::uint32_t>(number) & 0xffff);
    // The second fragment of the datagram may come first; without the first one, they wait.
    std::swap(fragments[0], fragments[flow % 3]);
    for (std::size_t i = 0; i < fragments.size(); ++i) {
      if (cut && flow % 4 == 0 && i == flow % 3) continue;
      add(fragments[i], worker(udp4));
    }
  }
  return frames;
}

/// What reached a worker, by number. Copies are apart.
struct Received {
  std::vector<std::uint64_t> numbers, copies;

  void take(Batch& batch, RxStatus status) {
    for (const PacketDescriptor& one : batch.packets())
      (status == RxStatus::copy ? copies : numbers).push_back(one.timestamp_ns);
  }
};

/// Each worker receives its part of the frames from its queue, in a thread of its own, and polls in between.
std::vector<Received> run_workers(Exchange& exchange, const std::vector<std::vector<Numbered>>& queues) {
  const auto workers = static_cast<unsigned>(queues.size());
  std::vector<Received> received(workers);
  std::barrier all_given(static_cast<std::ptrdiff_t>(workers));
  const auto work = [&](unsigned here) {
    OwnBatch batch(64 << 10, 16);
    const auto poll = [&] {
      RxStatus status{};
      do {
        batch->reset(0);
        status = exchange.poll(here, *batch, 0);
        received[here].take(*batch, status);
      } while (status != RxStatus::idle);
    };
    for (const Numbered& frame : queues[here]) {
      if (exchange.keeps(here, frame.captured())) received[here].numbers.push_back(frame.number);
      exchange.wake_others(here);
      if (frame.number % 7 == 0) poll();
    }
    all_given.arrive_and_wait();
    // Fragments take two steps: to worker 0, and from there.
    for (int step = 0; step < 2; ++step) {
      poll();
      all_given.arrive_and_wait();
    }
    poll();
  };
  std::vector<std::thread> threads;
  for (unsigned w = 0; w < workers; ++w) threads.emplace_back(work, w);
  for (std::thread& thread : threads) thread.join();
  EXPECT_TRUE(exchange.is_empty()) << "but for fragments that wait for their datagram";
  return received;
}

std::vector<std::vector<Numbered>> dealt(std::vector<Numbered> frames, unsigned workers, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<std::vector<Numbered>> queues(workers);
  for (Numbered& frame : frames) queues[random() % workers].push_back(std::move(frame));
  return queues;
}

TEST(Exchange, TakesEachFrameToTheWorkerOfItsFlow) {
  for (const unsigned workers : {2U, 3U, 7U}) {
    std::uint64_t number = 0;
    const std::vector<Numbered> frames = make_traffic(workers, 400, false, number);
    Exchange exchange(workers);
    const auto received = run_workers(exchange, dealt(frames, workers, workers));
    std::map<std::uint64_t, unsigned> worker_of_number;
    for (unsigned w = 0; w < workers; ++w) {
      EXPECT_TRUE(received[w].copies.empty());
      for (const std::uint64_t one : received[w].numbers)
        ASSERT_TRUE(worker_of_number.emplace(one, w).second) << one << " came twice";
    }
    ASSERT_EQ(worker_of_number.size(), frames.size()) << workers << " workers";
    for (const Numbered& frame : frames) ASSERT_EQ(worker_of_number[frame.number], frame.worker) << frame.number;
    const Exchange::Counts counts = exchange.counts();
    EXPECT_EQ(counts.ring_full + counts.too_long + counts.left, 0U);
    EXPECT_EQ(counts.fragments.packets, 1200U);
  }
}

TEST(Exchange, CountsWhatItLoses) {
  constexpr unsigned kWorkers = 3;
  std::uint64_t number = 0;
  Exchange exchange(kWorkers);
  const std::vector<Numbered> frames = make_traffic(kWorkers, 12000, true, number);
  // Nobody polls, so that rings fill.
  std::uint64_t kept = 0;
  for (const Numbered& frame : frames)
    kept += exchange.keeps(static_cast<unsigned>(frame.number % kWorkers), frame.captured()) ? 1 : 0;
  const Exchange::Counts counts = exchange.counts();
  EXPECT_EQ(counts.handed_over, 0U);
  EXPECT_GT(counts.ring_full, 0U);
  EXPECT_GT(counts.left, 0U);
  EXPECT_EQ(kept + counts.ring_full + counts.left, frames.size());
}

TEST(Exchange, CountsWaitingFragmentsAsLeft) {
  Exchange exchange(2);
  const Frame whole = packet().eth().ipv4("10.0.0.1", "10.1.0.1").udp(1, 53).payload(std::string(64, 'x')).bytes();
  const auto fragments = fragments_of(whole, {32}, 5);
  EXPECT_FALSE(exchange.keeps(0, Numbered{fragments[1], 1}.captured()));
  EXPECT_FALSE(exchange.keeps(1, Numbered{fragments[1], 2}.captured()));
  EXPECT_EQ(exchange.counts().left, 2U);
  OwnBatch batch;
  EXPECT_EQ(exchange.poll(0, *batch, 0), RxStatus::idle);
  EXPECT_EQ(exchange.poll(1, *batch, 0), RxStatus::idle);
  EXPECT_EQ(exchange.counts().left, 2U);
  EXPECT_EQ(exchange.counts().handed_over, 0U);
  // The first fragment takes them along.
  EXPECT_FALSE(exchange.keeps(0, Numbered{fragments[0], 3}.captured()));
  for (unsigned w = 0; w < 2; ++w) exchange.poll(w, *batch, 0);
  EXPECT_EQ(batch->size(), 3U);
  EXPECT_EQ(exchange.counts().left, 0U);
  EXPECT_EQ(exchange.counts().handed_over, 3U);
}

TEST(Exchange, DoesNotCountCopies) {
  constexpr unsigned kWorkers = 4;
  Exchange exchange(kWorkers);
  std::uint64_t given = 0;
  // Two first fragments of one datagram that name flows of different workers.
  for (std::uint16_t port = 1; port < 40; ++port) {
    for (const std::uint16_t source : {port, static_cast<std::uint16_t>(port + 1000)}) {
      const Frame whole =
          packet().eth().ipv4("10.0.0.1", "10.1.0.1").udp(source, 53).payload(std::string(64, 'x')).bytes();
      for (const Frame& fragment : fragments_of(whole, {32}, port)) {
        EXPECT_FALSE(exchange.keeps(static_cast<unsigned>(given % kWorkers), Numbered{fragment, given + 1}.captured()));
        ++given;
      }
    }
  }
  std::size_t packets = 0, copies = 0;
  for (int round = 0; round < 3; ++round) {
    for (unsigned w = 0; w < kWorkers; ++w) {
      RxStatus status{};
      do {
        OwnBatch batch;
        status = exchange.poll(w, *batch, 0);
        if (status == RxStatus::copy) {
          EXPECT_EQ(batch->size(), 1U);
        }
        (status == RxStatus::copy ? copies : packets) += batch->size();
      } while (status != RxStatus::idle);
    }
  }
  const Exchange::Counts counts = exchange.counts();
  EXPECT_GT(copies, 0U);
  EXPECT_EQ(copies, counts.fragments.copied);
  EXPECT_EQ(packets, given);
  EXPECT_EQ(counts.handed_over, given);
  EXPECT_EQ(counts.left, 0U);
}

TEST(Exchange, DiscardsAtMostAsManyAsAsked) {
  Exchange exchange(2);
  std::uint64_t given = 0;
  for (std::uint16_t port = 1; given < 100; ++port) {
    const Frame frame = packet().eth().ipv4("10.0.0.1", "10.1.0.1").udp(port, 53).payload("x").bytes();
    given += exchange.keeps(0, Numbered{frame, port}.captured()) ? 0 : 1;
  }
  const auto first = exchange.discard(1, 30);
  EXPECT_EQ(first.packets, 30U);
  EXPECT_EQ(first.status, RxStatus::more);
  EXPECT_EQ(first.bytes, 30 * (14 + 20 + 8 + 1));
  EXPECT_EQ(exchange.discard(1, 1000).packets, 70U);
  EXPECT_EQ(exchange.counts().left, 0U);
}

TEST(Exchange, CountsFramesThatFitNowhere) {
  Exchange exchange(2);
  for (std::uint16_t port = 1; port < 20; ++port) {
    Frame frame = packet().eth().ipv4("10.0.0.1", "10.1.0.1").udp(port, 53).payload("x").bytes();
    frame.resize(1 << 20);
    if (exchange.keeps(0, Numbered{frame, 1}.captured())) continue;
    EXPECT_EQ(exchange.counts().too_long, 1U);
    frame.resize(100000);
    EXPECT_FALSE(exchange.keeps(0, Numbered{frame, 1}.captured()));
    OwnBatch batch(65536, 4);
    EXPECT_EQ(exchange.poll(1, *batch, 0), RxStatus::idle);
    EXPECT_EQ(exchange.counts().too_long, 2U);
    EXPECT_EQ(exchange.counts().left, 0U);
    return;
  }
  FAIL() << "all flows are worker 0's";
}

/// A frame that belongs to this worker of `workers`, from some flow.
Frame frame_for(unsigned worker, unsigned workers) {
  for (std::uint16_t port = 1;; ++port) {
    Frame frame = packet().eth().ipv4("10.0.0.1", "10.1.0.1").udp(port, 53).payload("x").bytes();
    if (worker_of(frame, static_cast<std::uint32_t>(frame.size()), LinkType::ethernet, workers) == worker) return frame;
  }
}

/// Worker 0 of three, with small batches. Its own frames have the number 0, others that of the worker they came from.
class ExchangeTurns : public ::testing::Test {
 protected:
  static constexpr std::size_t kBatch = 4;

  void flood_from(unsigned worker) {
    for (std::size_t i = 0; i < kBatch; ++i) comes_from(worker);
  }
  void comes_from(unsigned worker) { ASSERT_FALSE(exchange_.keeps(worker, Numbered{frame_, worker}.captured())); }
  /// Polls with an empty batch. Returns the numbers of its frames.
  std::vector<std::uint64_t> poll() {
    OwnBatch batch(64 << 10, kBatch);
    last_ = exchange_.poll_in_turns(0, *batch, 0, [&] {
      for (; own_ > 0; --own_) {
        if (!batch->append(frame_, {0, static_cast<std::uint32_t>(frame_.size()), 0, LinkType::ethernet}))
          return RxStatus::more;
      }
      return own_status_;
    });
    std::vector<std::uint64_t> numbers;
    for (const PacketDescriptor& one : batch->packets()) numbers.push_back(one.timestamp_ns);
    return numbers;
  }

  Exchange exchange_{3};
  Frame frame_ = frame_for(0, 3);
  std::size_t own_ = 0;  // frames in the worker's own queue
  RxStatus own_status_ = RxStatus::idle;
  RxStatus last_{};
};

TEST_F(ExchangeTurns, LetsAQueueReceiveDuringAFloodFromOthers) {
  constexpr std::size_t kPolls = 20;
  std::size_t own = 0;
  for (std::size_t i = 0; i < kPolls; ++i) {
    flood_from(1);
    own_ = kBatch;
    for (const std::uint64_t number : poll()) own += number == 0 ? 1 : 0;
  }
  EXPECT_EQ(own, kPolls * kBatch / 2);
}

TEST_F(ExchangeTurns, LetsOthersFramesInDuringAFloodOfTheQueue) {
  comes_from(1);
  own_ = 100 * kBatch;
  std::vector<std::uint64_t> two_polls = poll();
  for (const std::uint64_t number : poll()) two_polls.push_back(number);
  EXPECT_EQ(std::ranges::count(two_polls, 1), 1);
}

TEST_F(ExchangeTurns, LetsEachWorkersFramesInDuringAFloodFromAnother) {
  comes_from(2);
  std::vector<std::uint64_t> some_polls;
  for (int i = 0; i < 4; ++i) {
    flood_from(1);
    flood_from(1);
    for (const std::uint64_t number : poll()) some_polls.push_back(number);
  }
  EXPECT_EQ(std::ranges::count(some_polls, 2), 1);
}

TEST_F(ExchangeTurns, FillsABatchFromBothIfThereIsRoom) {
  for (int i = 0; i < 2; ++i) {
    comes_from(1);
    comes_from(2);
    own_ = 1;
    EXPECT_THAT(poll(), ::testing::UnorderedElementsAre(0, 1, 2));
    EXPECT_EQ(last_, RxStatus::idle);
  }
}

TEST_F(ExchangeTurns, TakesOthersFramesWhileTheQueueHasNoMemoryToLend) {
  own_status_ = RxStatus::starved;
  for (int i = 0; i < 2; ++i) {
    comes_from(1);
    EXPECT_THAT(poll(), ::testing::ElementsAre(1));
    EXPECT_EQ(last_, RxStatus::starved);
  }
}

bool is_readable(int fd) {
  pollfd wait{fd, POLLIN, 0};
  return ::poll(&wait, 1, 0) == 1;
}

/// A worker that is not woken would sleep on frames; one that is woken for nothing again and again would never sleep.
TEST(Exchange, WakesAWorkerUntilItHasTakenItsFrames) {
  constexpr unsigned kWorkers = 2;
  Exchange exchange(kWorkers);
  const Numbered frame{frame_for(1, kWorkers), 1, 1};
  const int rounds = static_cast<int>(penstock::testing::rounds(300));
  std::atomic<int> given{0};
  std::atomic<int> taken{0};
  std::thread sender([&] {
    for (int round = 1; round <= rounds; ++round) {
      EXPECT_FALSE(exchange.keeps(0, frame.captured()));
      exchange.wake_others(0);
      given.store(round);
      while (taken.load() < round) std::this_thread::yield();
    }
  });
  for (int round = 1; round <= rounds; ++round) {
    OwnBatch batch(4096, 4);
    std::size_t got = 0;
    while (got == 0) {  // as a worker that polls while the other one gives it a frame
      batch->reset(0);
      static_cast<void>(exchange.poll(1, *batch, 0));
      got += batch->size();
    }
    while (given.load() < round) std::this_thread::yield();
    ASSERT_EQ(got, 1U);
    EXPECT_FALSE(is_readable(exchange.wait_fd(1))) << "round " << round;
    if (HasFailure()) round = rounds;
    taken.store(round);
  }
  taken.store(rounds);
  sender.join();
  EXPECT_FALSE(exchange.keeps(0, frame.captured()));
  EXPECT_TRUE(is_readable(exchange.wait_fd(1)));
  exchange.wake_others(0);
  EXPECT_TRUE(is_readable(exchange.wait_fd(1)));
}

}  // namespace
}  // namespace penstock::port
