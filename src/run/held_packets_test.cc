// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Packets that a function holds: the bounds, and their way through a chain, on CPUs and over a simulated device.

#include "run/held_packets.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <functional>
#include <memory>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "plan/device_plan.h"
#include "ring/testing/simulated_lane.h"
#include "run/cpu_executor.h"
#include "run/device_executor.h"
#include "run/run.h"
#include "run/testing/fakes.h"

namespace penstock::run {
namespace {

using namespace std::chrono_literals;
using testing::append;
using testing::Bytes;
using ::testing::Contains;
using testing::each;
using ::testing::ElementsAre;
using testing::FakeChain;
using testing::FakePort;
using ::testing::IsEmpty;
using ::testing::Not;
using testing::number_of;
using testing::numbered;

constexpr function::HoldingStage::Reasons kReasonsToHold{0, 1};
constexpr std::array<std::string_view, 2> kReasons{"lacking", "in_vain"};

std::uint64_t count_of(const report::Traffic& traffic) { return traffic.packets.get(); }

/// Frames in a batch of their own.
struct Frames {
  explicit Frames(const std::vector<Bytes>& frames)
      : bytes(testing::bytes_of(frames) + kFrameAlignment * frames.size()), descriptors(frames.size()) {
    batch = Batch(bytes, descriptors, {});
    for (const Bytes& frame : frames) EXPECT_TRUE(append(batch, frame));
  }
  std::vector<std::uint8_t> bytes;
  std::vector<PacketDescriptor> descriptors;
  Batch batch;
};

/// HeldPackets alone, at a time that passes as the test says.
struct Held {
  bool take(std::uint64_t number, std::uint64_t lacks, std::uint64_t batch = 0, std::size_t length = 0) {
    Bytes frame = numbered(number);
    if (length > 0) frame.insert(frame.begin(), length - frame.size(), 0);
    Frames frames({frame});
    return held.take(frames.batch.view(0), lacks, false, batch, now);
  }
  /// Keeps those for which `keeps` says so. Returns the numbers of the others.
  std::vector<std::uint64_t> review(const std::function<bool(std::uint64_t)>& keeps, std::uint64_t last_batch = 0) {
    std::vector<std::uint64_t> left;
    HeldPackets::Review review(held, last_batch, true, now);
    for (auto burst = review.next(); !burst.empty(); burst = review.next()) {
      for (std::size_t i = 0; i < burst.size(); ++i) {
        EXPECT_TRUE(burst[i].packet->verdict.alive());
        const std::uint64_t number = number_of(burst[i]);
        if (keeps(number)) {
          review.keep(i, number % 10);
        } else {
          left.push_back(number);
          review.let_go(i);
        }
      }
    }
    return left;
  }
  std::vector<std::uint64_t> all() {
    return review([](std::uint64_t) { return false; });
  }

  FunctionCounters counters{2};
  HeldPackets held{kReasonsToHold, {8, 8}, counters};
  HeldPackets::Clock::time_point now = HeldPackets::Clock::now();
};

TEST(HeldPackets, GivesUpTheOldestOfThoseThatWaitForTheSame) {
  Held held;
  EXPECT_TRUE(held.take(1000, 2));
  for (std::uint64_t i = 0; i < HeldPackets::kMostOfOne + 3; ++i) EXPECT_TRUE(held.take(i, 1));
  EXPECT_EQ(held.counters.held.get().packets, HeldPackets::kMostOfOne + 1);
  EXPECT_EQ(count_of(held.counters.dropped[0]), 3U);
  const auto left = held.all();
  ASSERT_EQ(left.size(), HeldPackets::kMostOfOne + 1);
  EXPECT_EQ(left[0], 1000U) << "it waits for something else";
  EXPECT_EQ(left[1], 3U);
  EXPECT_EQ(left.back(), HeldPackets::kMostOfOne + 2);
  EXPECT_EQ(held.counters.held.get().packets, 0U);
  EXPECT_EQ(held.counters.held.get().bytes, 0U);
}

TEST(HeldPackets, BoundsTheBytesOfThoseThatWaitForTheSame) {
  Held held;
  constexpr std::size_t kLength = 10'000;
  for (std::uint64_t i = 0; i < 30; ++i) EXPECT_TRUE(held.take(i, 1, 0, kLength));
  constexpr std::size_t kMost = HeldPackets::kMostBytesOfOne / kLength;
  EXPECT_EQ(held.counters.held.get().packets, kMost);
  EXPECT_EQ(held.all().front(), 30 - kMost);
}

TEST(HeldPackets, TakesNoMoreOnceTooManyWait) {
  Held held;
  for (std::uint64_t i = 0; i < HeldPackets::kMost; ++i) EXPECT_TRUE(held.take(i, i));
  EXPECT_FALSE(held.take(5000, 5000));
  EXPECT_FALSE(held.take(5000, 7)) << "whether or not others wait for the same";
  EXPECT_EQ(held.counters.held.get().packets, HeldPackets::kMost);
  EXPECT_EQ(held.all().size(), HeldPackets::kMost);
  EXPECT_TRUE(held.take(5000, 5000)) << "there is room again";
}

TEST(HeldPackets, BoundsTheBytesOfAll) {
  Held held;
  std::uint64_t taken = 0;
  while (held.take(taken, taken, 0, 60'000)) ++taken;
  EXPECT_EQ(taken, HeldPackets::kMostBytes / 60'032);
}

TEST(HeldPackets, KeepTheirOrderAndBytesHoweverManyAreGivenUp) {
  Held held;
  std::vector<std::uint64_t> rare;
  for (std::uint64_t i = 0; i < 20'000; ++i) {
    const bool is_rare = i % 1000 == 0;
    if (is_rare) rare.push_back(i);
    ASSERT_TRUE(held.take(i, is_rare ? 1 : 0));
  }
  auto left = held.all();
  ASSERT_EQ(left.size(), rare.size() + HeldPackets::kMostOfOne);
  EXPECT_TRUE(std::ranges::is_sorted(left));
  left.resize(rare.size());
  EXPECT_EQ(left, rare);
  EXPECT_EQ(count_of(held.counters.dropped[0]), 20'000 - rare.size() - HeldPackets::kMostOfOne);
}

TEST(HeldPackets, KeepTheirPlaceInAReview) {
  Held held;
  for (std::uint64_t i = 0; i < 300; ++i) EXPECT_TRUE(held.take(i, i % 10));
  const auto is_even = [](std::uint64_t number) { return number % 2 == 0; };
  EXPECT_EQ(held.review(is_even).size(), 150U);
  EXPECT_EQ(held.counters.held.get().packets, 150U);
  EXPECT_TRUE(held.take(300, 0));
  const auto left = held.all();
  ASSERT_EQ(left.size(), 151U);
  for (std::size_t i = 0; i < left.size(); ++i) EXPECT_EQ(left[i], 2 * i);
}

TEST(HeldPackets, OfLaterBatchesWaitForTheirTurn) {
  Held held;
  EXPECT_TRUE(held.take(1, 1, 1));
  EXPECT_TRUE(held.take(2, 1, 2));
  EXPECT_THAT(held.review([](std::uint64_t) { return false; }, 1), ElementsAre(1));
  EXPECT_TRUE(held.held.is_due(held.now)) << "the news is for them as well";
  EXPECT_THAT(held.review([](std::uint64_t) { return false; }, 2), ElementsAre(2));
}

TEST(HeldPackets, AreDueToBeAskedForAgainAndWhenTheirTimeIsOver) {
  Held held;
  EXPECT_FALSE(held.held.is_due(held.now + 1h)) << "there are none";
  EXPECT_TRUE(held.take(1, 1));
  EXPECT_FALSE(held.held.is_due(held.now + 900ms));
  EXPECT_TRUE(held.held.is_due(held.now + 1s));
  held.now += 2900ms;
  EXPECT_THAT(held.review([](std::uint64_t) { return true; }), IsEmpty());
  EXPECT_FALSE(held.held.is_due(held.now + 50ms));
  EXPECT_TRUE(held.held.is_due(held.now + 100ms));
  held.now += 100ms;
  HeldPackets::Review review(held.held, 0, false, held.now);
  ASSERT_EQ(review.next().size(), 1U);
  EXPECT_TRUE(review.has_waited_long(0));
  review.let_go(0);
}

/// What the stages of a function know: the flows that it can forward, and those that it never will.
struct Knowledge {
  std::set<unsigned> known, failed;
  bool is_news = false;
  std::vector<unsigned> asked;

  void learn(unsigned flow) {
    known.insert(flow);
    is_news = true;
  }
};

unsigned flow_of(PacketView packet) { return packet.udp().source_port.value() - 1024U; }

/// Forwards the packets of known flows, holds others, and decrements the TTL.
class HoldingFunction final : public function::NetworkFunction {
 public:
  static constexpr Access kAccess{kParsedFields | FieldSet{Field::l4_src_port, Field::ipv4_ttl, Field::verdict},
                                  {Field::ipv4_ttl, Field::verdict}};

  explicit HoldingFunction(Knowledge& knowledge) : knowledge_(knowledge) {
    traits_.drop_reasons = kReasons;
    traits_.devices[function::Processor::gpu] = kAccess;
  }
  const function::NfTraits& traits() const noexcept override { return traits_; }
  std::unique_ptr<function::CpuStage> make_cpu_stage() override { return std::make_unique<Stage>(knowledge_); }
  std::string description() const override { return "holds"; }

  static Verdict decide(PacketView packet, const Knowledge& knowledge) {
    if (!knowledge.known.contains(flow_of(packet))) return Verdict::drop(0);
    --packet.ipv4().ttl;
    return packet.packet->verdict;
  }

 private:
  class Stage final : public function::CpuStage, public function::HoldingStage {
   public:
    explicit Stage(Knowledge& knowledge) : knowledge_(knowledge) {}
    void process(std::span<PacketView> packets) noexcept override {
      for (const PacketView packet : packets) packet.packet->verdict = decide(packet, knowledge_);
    }
    Reasons reasons() const noexcept override { return kReasonsToHold; }
    std::optional<std::uint64_t> lacks(PacketView packet) noexcept override {
      if (knowledge_.known.contains(flow_of(packet))) return std::nullopt;
      knowledge_.asked.push_back(flow_of(packet));
      return flow_of(packet);
    }
    bool has_news() noexcept override { return std::exchange(knowledge_.is_news, false); }
    void process_again(std::span<PacketView> packets, bool news) noexcept override {
      process(packets);
      for (const PacketView packet : packets) {
        if (news && knowledge_.failed.contains(flow_of(packet))) packet.packet->verdict = Verdict::drop(1);
      }
    }

   private:
    Knowledge& knowledge_;
  };
  Knowledge& knowledge_;
  function::NfTraits traits_{.name = "holds", .summary = "", .cpu = kAccess, .devices = {}, .finish = {}};
};

/// A chain of three functions, the second of which holds packets.
struct Bed {
  Bed() : out(chain.add_sink("out")) {
    chain.add_function("before", seen(before));
    chain.functions.push_back({"holds", std::make_unique<HoldingFunction>(knowledge)});
    chain.add_function("after", seen(after));
    chain.open();
    counters = std::make_unique<WorkerCounters>(chain);
    executor = std::make_unique<CpuExecutor>(chain, 0, *counters, &taps);
    executor->begin();
  }
  static testing::FakeFunction::Process seen(std::vector<std::uint64_t>& numbers) {
    return [&numbers](std::span<PacketView> packets) {
      for (const PacketView packet : packets) numbers.push_back(number_of(packet));
    };
  }
  void pass(const std::vector<Bytes>& frames) {
    Frames some(frames);
    counters->in.add(frames.size(), testing::bytes_of(frames));
    ASSERT_TRUE(executor->submit(some.batch));
    ASSERT_NE(executor->retire(), nullptr);
    expect_each_counted_once();
    // The batch's memory is used again.
    std::ranges::fill(some.bytes, 0xee);
  }
  void expect_each_counted_once() const {
    const FunctionCounters& holds = counters->functions[1];
    EXPECT_EQ(count_of(holds.in), count_of(holds.forwarded) + count_of(holds.dropped[0]) + count_of(holds.dropped[1]) +
                                      holds.held.get().packets);
    EXPECT_EQ(counters->in.bytes.get(), counters->forwarded.bytes.get() + holds.dropped[0].bytes.get() +
                                            holds.dropped[1].bytes.get() + holds.held.get().bytes);
  }
  [[nodiscard]] const FunctionCounters& holding() const { return counters->functions[1]; }

  Knowledge knowledge;
  std::vector<std::uint64_t> before, after;
  FakeChain chain;
  FakePort& out;
  Taps taps;
  std::unique_ptr<WorkerCounters> counters;
  std::unique_ptr<CpuExecutor> executor;
};

TEST(HoldingFunction, SendsHeldPacketsBeforeLaterOnesOfTheirFlow) {
  Bed bed;
  bed.knowledge.known = {1};
  bed.pass({numbered(0, 1), numbered(1, 2), numbered(2, 1), numbered(3, 2)});
  EXPECT_THAT(bed.out.numbers(), ElementsAre(0, 2)) << "nobody waits for the packets that are held";
  EXPECT_EQ(bed.holding().held.get().packets, 2U);
  EXPECT_TRUE(bed.executor->holds_packets());
  bed.pass({numbered(4, 2)});
  bed.knowledge.learn(2);
  bed.pass({numbered(5, 2), numbered(6, 1)});
  EXPECT_THAT(bed.out.numbers(), ElementsAre(0, 2, 1, 3, 4, 5, 6));
  EXPECT_EQ(bed.holding().held.get().packets, 0U);
  EXPECT_FALSE(bed.executor->holds_packets());
}

struct SeenLinks {
  std::vector<std::uint8_t> sources;  // with which packets arrived: the last bytes; 0: not known
  unsigned wholly_known = 0;          // of how many packets more is known
};

/// What a function finds after one that holds packets and one that writes link addresses. `written_before`: the latter
/// comes first.
SeenLinks watch_links(bool written_before) {
  Knowledge knowledge;
  SeenLinks seen;
  FakeChain chain;
  chain.add_sink("out");
  const auto write = [&chain] {
    testing::FakeFunction& writes = chain.add_function("writes", [](std::span<PacketView> packets) {
      for (const PacketView packet : packets) packet.ethernet().source = {{2, 0, 0, 0, 0, 0xaa}};
    });
    writes.own_traits.cpu.writes = {Field::eth_src};
  };
  if (written_before) write();
  chain.functions.push_back({"holds", std::make_unique<HoldingFunction>(knowledge)});
  if (!written_before) write();
  testing::FakeFunction& watches = chain.add_function("watches", {});
  watches.own_traits.asks_for_arrivals = true;
  watches.process = [&](std::span<PacketView> packets) {
    for (const PacketView packet : packets) {
      const EthernetHeader* const header = watches.emitter->link_header_at_arrival(packet);
      seen.sources.push_back(header == nullptr ? 0 : header->source.bytes[5]);
      seen.wholly_known += watches.emitter->as_it_arrived(packet) ? 1 : 0;
    }
  };
  chain.open();
  WorkerCounters counters(chain);
  CpuExecutor executor(chain, 0, counters, nullptr);
  executor.begin();
  knowledge.known = {1};
  std::vector<Bytes> frames{numbered(0, 1), numbered(1, 2)};
  frames[0][11] = 7;
  frames[1][11] = 8;
  Frames some(frames);
  EXPECT_TRUE(executor.submit(some.batch));
  EXPECT_NE(executor.retire(), nullptr);
  std::ranges::fill(some.bytes, 0xee);
  knowledge.learn(2);
  executor.pass_boundary();
  return seen;
}

TEST(HoldingFunction, KeepsTheLinkHeadersWithWhichPacketsArrived) {
  const SeenLinks seen = watch_links(false);
  EXPECT_THAT(seen.sources, ElementsAre(7, 8));
  EXPECT_EQ(seen.wholly_known, 1U) << "the rest of a held packet may have been translated before";
}

TEST(HoldingFunction, DoesNotTakeWrittenLinkHeadersForThoseOfArrival) {
  EXPECT_THAT(watch_links(true).sources, ElementsAre(7, 0));
}

TEST(HoldingFunction, TakesHeldPacketsThroughEachFunctionOnce) {
  Bed bed;
  bed.pass({numbered(0, 1), numbered(1, 1)});
  EXPECT_THAT(bed.before, ElementsAre(0, 1));
  EXPECT_THAT(bed.after, IsEmpty());
  bed.knowledge.learn(1);
  bed.executor->pass_boundary();
  EXPECT_THAT(bed.before, ElementsAre(0, 1));
  EXPECT_THAT(bed.after, ElementsAre(0, 1));
  ASSERT_EQ(bed.out.sent[0].size(), 2U);
  Bytes expected = numbered(0, 1);
  --expected[22];  // TTL
  EXPECT_EQ(bed.out.sent[0][0].bytes, expected) << "as if it had not waited";
  EXPECT_EQ(bed.out.flushes[0], 1);
  bed.expect_each_counted_once();
}

/// Asks about the connections of packets, and notes which packets may begin theirs.
class AskingFunction final : public function::NetworkFunction {
 public:
  explicit AskingFunction(std::vector<std::uint64_t>& begin, const conntrack::Connections*& connections)
      : begin_(begin), connections_(connections) {
    traits_.connections = conntrack::Options();
  }
  const function::NfTraits& traits() const noexcept override { return traits_; }
  std::unique_ptr<function::CpuStage> make_cpu_stage() override { return std::make_unique<Stage>(*this); }
  std::string description() const override { return "asks"; }

 private:
  class Stage final : public function::CpuStage {
   public:
    explicit Stage(AskingFunction& of) : of_(of) {}
    void set_connections(conntrack::Connections& connections) noexcept override {
      of_.connections_ = connections_ = &connections;
    }
    void process(std::span<PacketView> packets) noexcept override {
      for (const PacketView packet : packets) {
        if (connections_->may_begin(connections_->of(packet))) of_.begin_.push_back(number_of(packet));
        packet.ipv4().source.bytes[3] ^= 0x80;  // the next one would not find the connection by this
      }
    }

   private:
    AskingFunction& of_;
    conntrack::Connections* connections_ = nullptr;
  };
  std::vector<std::uint64_t>& begin_;
  const conntrack::Connections*& connections_;
  function::NfTraits traits_{.name = "asks", .summary = "", .cpu = {FieldSet::all(), {Field::ipv4_src}}};
};

struct AskingBed {
  AskingBed() : out(chain.add_sink("out")) {
    chain.functions.push_back({"before", std::make_unique<AskingFunction>(before, connections)});
    chain.functions.push_back({"holds", std::make_unique<HoldingFunction>(knowledge)});
    chain.functions.push_back({"after", std::make_unique<AskingFunction>(after, connections)});
    chain.settings.batch_packets = 64;
    chain.open();
    counters = std::make_unique<WorkerCounters>(chain);
    executor = std::make_unique<CpuExecutor>(chain, 0, *counters, nullptr);
    executor->begin();
  }
  void pass(const std::vector<Bytes>& frames) {
    Frames some(frames);
    some.batch.reset(sequence);
    for (const Bytes& frame : frames) ASSERT_TRUE(append(some.batch, frame));
    sequence += static_cast<std::uint32_t>(frames.size());
    ASSERT_TRUE(executor->submit(some.batch));
    ASSERT_NE(executor->retire(), nullptr);
  }

  Knowledge knowledge;
  std::vector<std::uint64_t> before, after;
  const conntrack::Connections* connections = nullptr;
  FakeChain chain;
  FakePort& out;
  std::unique_ptr<WorkerCounters> counters;
  std::unique_ptr<CpuExecutor> executor;
  std::uint32_t sequence = 0;
};

TEST(HoldingFunction, DoesNotConfirmConnectionsBeforeTheirPacketsGoOn) {
  AskingBed bed;
  bed.pass({numbered(0, 1)});
  EXPECT_EQ(bed.connections->counters().connections, 1U);
  EXPECT_EQ(bed.connections->counters().confirmed, 0U);
  // What was said about it must outlive what is said about later packets.
  bed.knowledge.known = {2};
  for (std::uint64_t i = 0; i < 10; ++i) bed.pass(std::vector<Bytes>(64, numbered(100 + i, 2)));
  EXPECT_EQ(bed.connections->counters().confirmed, 1U);
  EXPECT_THAT(bed.after, Not(Contains(0)));
  bed.knowledge.learn(1);
  bed.executor->pass_boundary();
  EXPECT_THAT(bed.after, Contains(0)) << "functions that follow can still decide about its connection";
  EXPECT_EQ(bed.connections->counters().confirmed, 2U);
  EXPECT_EQ(bed.connections->counters().connections, 2U) << "it was looked up once";
}

TEST(HoldingFunction, EndsConnectionsWhosePacketsWaitInVain) {
  AskingBed bed;
  bed.pass({numbered(0, 1)});
  EXPECT_EQ(bed.connections->counters().connections, 1U);
  bed.executor->give_up_held();
  EXPECT_EQ(bed.connections->counters().connections, 0U);
}

TEST(HoldingFunction, AsksForWhatPacketsLack) {
  Bed bed;
  bed.pass({numbered(0, 1), numbered(1, 2), numbered(2, 1)});
  EXPECT_THAT(bed.knowledge.asked, ElementsAre(1, 2, 1));
}

TEST(HoldingFunction, DropsPacketsThatWaitInVain) {
  Bed bed;
  bed.knowledge.failed = {1};
  bed.pass({numbered(0, 1), numbered(1, 2)});
  bed.executor->pass_boundary();
  EXPECT_EQ(count_of(bed.holding().dropped[1]), 0U) << "it has learnt that before they came";
  bed.knowledge.is_news = true;
  bed.executor->pass_boundary();
  EXPECT_EQ(count_of(bed.holding().dropped[1]), 1U);
  EXPECT_EQ(bed.holding().held.get().packets, 1U);
  bed.expect_each_counted_once();
}

TEST(HoldingFunction, DropsWhatDoesNotFit) {
  Bed bed;
  std::vector<Bytes> frames;
  for (std::uint64_t i = 0; i < HeldPackets::kMostOfOne + 10; ++i) frames.push_back(numbered(i, 1));
  bed.pass(frames);
  EXPECT_EQ(bed.holding().held.get().packets, HeldPackets::kMostOfOne);
  EXPECT_EQ(count_of(bed.holding().dropped[0]), 10U);
}

TEST(HoldingFunction, GivesUpHeldPacketsAtTheEndAndCountsThem) {
  Bed bed;
  bed.pass({numbered(0, 1), numbered(1, 2)});
  bed.knowledge.learn(2);
  bed.executor->pass_boundary();
  bed.executor->give_up_held();
  bed.executor->end();
  EXPECT_THAT(bed.out.numbers(), ElementsAre(1)) << "it need not wait any more";
  EXPECT_EQ(count_of(bed.holding().dropped[0]), 1U);
  EXPECT_EQ(bed.holding().held.get().packets, 0U);
  bed.expect_each_counted_once();
}

TEST(HoldingFunction, CanGiveUpHeldPacketsAndGoOn) {
  Bed bed;
  bed.pass({numbered(0, 1)});
  bed.executor->give_up_held();
  EXPECT_EQ(count_of(bed.holding().dropped[0]), 1U);
  EXPECT_FALSE(bed.executor->holds_packets());
  bed.pass({numbered(1, 1)});
  EXPECT_TRUE(bed.executor->holds_packets());
  bed.knowledge.learn(1);
  bed.pass({numbered(2, 1)});
  EXPECT_THAT(bed.out.numbers(), ElementsAre(1, 2));
}

TEST(HoldingFunction, DecidesByTheNextEpochAfterAReload) {
  Bed bed;
  bed.pass({numbered(0, 1)});
  Knowledge next;
  next.known = {1};
  next.is_news = true;  // as at first
  std::vector<NamedFunction> functions;
  for (NamedFunction& named : bed.chain.functions) functions.push_back({named.name, std::move(named.function)});
  bed.chain.functions.clear();
  bed.chain.add_function("before", Bed::seen(bed.before));
  bed.chain.functions.push_back({"holds", std::make_unique<HoldingFunction>(next)});
  bed.chain.add_function("after", Bed::seen(bed.after));
  bed.executor->begin_epoch(make_host_stages(bed.chain.functions, nullptr));
  bed.executor->take_ended().reset();
  bed.pass({numbered(1, 1)});
  EXPECT_THAT(bed.out.numbers(), ElementsAre(0, 1));
  bed.executor->end();
}

TEST(HoldingFunction, CapturesPacketsOnlyOnceTheyAreDropped) {
  Bed bed;
  std::vector<std::uint64_t> captured;
  ASSERT_TRUE(bed.taps.capture.begin(
      1, {}, {10, {}, [&](const DroppedFrame& frame) { captured.push_back(number_of(frame.packet)); }}));
  bed.pass({numbered(0, 1)});
  EXPECT_THAT(captured, IsEmpty());
  bed.executor->give_up_held();
  EXPECT_THAT(captured, ElementsAre(0));
}

/// The function that holds packets runs on a device, whose knowledge is its own, as tables there follow later.
struct DeviceBed {
  explicit DeviceBed(bool is_last = true) : out(chain.add_sink("out")) {
    chain.functions.push_back({"holds", std::make_unique<HoldingFunction>(host)});
    if (!is_last) chain.add_function("after", [](std::span<PacketView>) {});
    chain.settings.processor = function::Processor::gpu;
    chain.settings.batch_packets = 300;
    chain.open();
    counters = std::make_unique<WorkerCounters>(chain);
    const auto plan = plan::plan_device(chain.traits(), chain.processors(), plan::WholeFrames::where_needed,
                                        plan::Sharing::packets, chain.forks);
    EXPECT_TRUE(plan);
    std::vector<std::unique_ptr<ring::Lane>> lanes;
    for (int i = 0; i < 3; ++i) {
      ring::LaneStages stages;
      stages.emplace_back().push_back(
          std::make_unique<ring::testing::SimulatedStage>([this](PacketView packet, std::byte*, const std::byte*) {
            const Verdict verdict = HoldingFunction::decide(packet, device);
            undecided += verdict.alive() ? 0 : 1;
            return verdict;
          }));
      lanes.push_back(std::make_unique<ring::testing::SimulatedLane>(
          ring::LaneShape{1 << 17, 300, plan::room_on_device(chain.traits(), *plan), plan->hash_flows,
                          ring::Crossing::copy, plan->segments},
          std::move(stages), behaviour));
    }
    executor = std::make_unique<DeviceExecutor>(chain, *plan, LaneSet{nullptr, {}, {}, std::move(lanes)}, 0, *counters,
                                                nullptr);
    executor->begin();
  }
  void submit(const std::vector<Bytes>& frames) {
    in_flight.push_back(std::make_unique<Frames>(frames));
    ASSERT_TRUE(executor->submit(in_flight.back()->batch));
  }
  void land() {
    for (int polls = 0; !in_flight.empty(); ++polls) {
      ASSERT_LT(polls, 1000);
      if (executor->retire() != nullptr) in_flight.erase(in_flight.begin());
    }
  }

  Knowledge host, device;
  int undecided = 0;  // by the device
  ring::testing::Behaviour behaviour;
  FakeChain chain;
  FakePort& out;
  std::unique_ptr<WorkerCounters> counters;
  std::unique_ptr<DeviceExecutor> executor;
  std::vector<std::unique_ptr<Frames>> in_flight;
};

TEST(HoldingFunction, HoldsWhatADeviceCannotDecide) {
  DeviceBed bed;
  bed.submit({numbered(0, 1), numbered(1, 2)});
  bed.land();
  EXPECT_THAT(bed.host.asked, ElementsAre(1, 2));
  EXPECT_EQ(bed.counters->functions[0].held.get().packets, 2U);
  EXPECT_EQ(count_of(bed.counters->functions[0].dropped[0]), 0U);
  bed.host.learn(1);
  bed.device.learn(1);
  bed.submit({numbered(2, 1)});
  bed.land();
  EXPECT_THAT(bed.out.numbers(), ElementsAre(0, 2));
  EXPECT_EQ(bed.out.sent[0][0].bytes[22], bed.out.sent[0][1].bytes[22]) << "TTL";
  bed.executor->give_up_held();
  EXPECT_EQ(count_of(bed.counters->functions[0].dropped[0]), 1U);
  EXPECT_EQ(count_of(bed.counters->functions[0].in), 3U);
  EXPECT_EQ(count_of(bed.counters->functions[0].forwarded), 2U);
}

TEST(HoldingFunction, KeepsAFlowsOrderWhileADeviceHasOlderTables) {
  DeviceBed bed;
  bed.host.learn(1);
  bed.executor->pass_boundary();  // these are no news any more
  bed.submit({numbered(0, 1)});
  bed.device.learn(1);  // before the next batch, and after this one has been decided
  bed.submit({numbered(1, 1)});
  bed.submit({numbered(2, 1)});
  bed.land();
  EXPECT_EQ(bed.undecided, 1);
  EXPECT_THAT(bed.out.numbers(), ElementsAre(0, 1, 2));
}

TEST(HoldingFunction, HoldsNoneOnADeviceIfFunctionsFollowAndAsksNevertheless) {
  DeviceBed bed(false);
  bed.submit({numbered(0, 1)});
  bed.land();
  EXPECT_THAT(bed.host.asked, ElementsAre(1));
  EXPECT_EQ(count_of(bed.counters->functions[0].dropped[0]), 1U);
  EXPECT_EQ(bed.counters->functions[0].held.get().packets, 0U);
}

TEST(HoldingFunction, IsInTheReportOfARunAndLosesNothingWhenItStops) {
  Knowledge knowledge;
  FakeChain chain;
  int made = 0;
  chain.add_source("in", [&](unsigned, Batch& batch) {
    if (made < 5) append(batch, numbered(static_cast<std::uint64_t>(made++), 1));
    return port::RxStatus::idle;
  });
  chain.add_sink("out");
  chain.functions.push_back({"holds", std::make_unique<HoldingFunction>(knowledge)});
  const std::atomic<bool> stop{false};
  auto run = start(chain, {}, stop);
  ASSERT_TRUE(run);
  report::RunReport report;
  for (int tries = 0; tries < 1000 && report.held.packets < 5; ++tries) {
    std::this_thread::sleep_for(5ms);
    report = (*run)->report();
  }
  EXPECT_EQ(report.held.packets, 5U);
  EXPECT_EQ(report.functions[0].held.packets, 5U);
  EXPECT_EQ(report.by_worker[0].held.packets, 5U);
  EXPECT_EQ(report.in.bytes, report.held.bytes);
  EXPECT_EQ(report.in.packets, report.held.packets + report.forwarded.packets + report.dropped.packets);
  (*run)->stop();
  report = (*run)->wait().report;
  EXPECT_EQ(report.held.packets, 0U);
  EXPECT_EQ(report.in.packets, 5U);
  EXPECT_EQ(report.dropped.packets, 5U);
}

}  // namespace
}  // namespace penstock::run
