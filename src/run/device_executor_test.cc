// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Compares the executor over a simulated device with the CPU executor: the same packets leave in the same order, with
// the same counts, however slow, late or faulty the device is, and wherever epochs begin.

#include "run/device_executor.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <array>
#include <deque>
#include <functional>
#include <map>
#include <numeric>
#include <optional>

#include "packet/flow_hash.h"
#include "ring/packet_ring.h"
#include "ring/testing/simulated_lane.h"
#include "run/cpu_executor.h"
#include "run/testing/fakes.h"

namespace penstock::run {
namespace {

using ring::testing::Behaviour;
using ring::testing::SimulatedLane;
using testing::Bytes;
using testing::FakeChain;
using testing::FakeFunction;
using testing::number_of;
using testing::numbered;

/// A device that no program knows: nothing but lanes and stages depends on which one it is.
constexpr auto kDevice = static_cast<function::Processor>(2);
static_assert(kDevice != function::Processor::gpu && is_device(kDevice));

constexpr std::array<std::string_view, 2> kReasons{"expired", "unwanted"};
constexpr FieldSet kTtl{Field::ipv4_ttl, Field::ipv4_checksum};
constexpr FieldSet kVerdict{Field::verdict};

// Functions that read only what their accesses declare. They decide as a GPU stage does, which also sets the offset of
// a frame whose start it moves.

/// Whether the IPv4 header can be read; it may be cut off.
bool has_ipv4(PacketView packet) {
  return packet.layout().network == NetworkLayer::ipv4 && packet.layout().has(PacketLayout::kNetworkHeader);
}

/// Drops by source port.
Verdict filter(PacketView& packet, unsigned epoch = 0) {
  if (!packet.has_ports()) return packet.packet->verdict;
  const unsigned port = packet.udp().source_port.value();
  return (port + epoch) % 5 == 3 ? Verdict::drop(1) : packet.packet->verdict;
}
constexpr Access kFilter{kParsedFields | kVerdict | FieldSet{Field::l4_src_port}, kVerdict};

/// Decrements the TTL, and chooses a port by flow hash.
Verdict route(PacketView& packet, unsigned epoch) {
  if (!has_ipv4(packet)) return packet.packet->verdict;
  if (packet.ipv4().ttl <= 1) return Verdict::drop(0);
  --packet.ipv4().ttl;
  packet.ipv4().checksum.set(static_cast<std::uint16_t>(packet.ipv4().checksum.value() + 0x100));
  return Verdict::forward(static_cast<PortIndex>((packet.packet->flow_hash + epoch) % 2));
}
constexpr Access kRoute{kParsedFields | kTtl | FieldSet{Field::flow_hash}, kTtl | kVerdict};

/// Marks by the last byte of the payload.
Verdict mark(PacketView& packet, unsigned epoch) {
  const std::uint32_t end = packet.layout().end;
  if (end > packet.layout().payload_offset) packet.packet->mark += packet.frame[end - 1] % 7 + epoch;
  return packet.packet->verdict;
}
constexpr Access kMark{kParsedFields | kVerdict | FieldSet{Field::payload, Field::mark, Field::verdict},
                       {Field::mark, Field::verdict}};

/// Inverts bits of each payload byte. The bytes of an incomplete header count as payload too, but parsing reads them.
Verdict scramble(PacketView& packet, unsigned epoch) {
  if (!packet.layout().has(PacketLayout::kTransportHeader)) return packet.packet->verdict;
  for (std::uint32_t i = packet.layout().payload_offset; i < packet.layout().end; ++i)
    packet.frame[i] ^= static_cast<std::uint8_t>(0x55 + epoch);
  return packet.packet->verdict;
}
constexpr Access kScramble{kParsedFields | kVerdict | FieldSet{Field::payload}, {Field::payload, Field::verdict}};

/// Sets the type of service from the mark that an earlier function left.
Verdict colour(PacketView& packet, unsigned epoch) {
  if (has_ipv4(packet)) {
    packet.ipv4().tos = static_cast<std::uint8_t>((packet.packet->mark + epoch) % 3);
  }
  return packet.packet->verdict;
}
constexpr Access kColour{kParsedFields | kVerdict | FieldSet{Field::mark}, {Field::ipv4_tos, Field::verdict}};

/// Forwards all. Its finish stage and its twin drop packets depending on earlier ones (`CountingFunction::remembers`).
Verdict meter(PacketView& packet, unsigned) { return packet.packet->verdict; }
constexpr Access kMeter{kParsedFields | kVerdict | FieldSet{Field::l4_src_port}, kVerdict};

/// All bytes of a frame, for functions that move them.
constexpr FieldSet every_byte() {
  FieldSet all{Field::frame_shape, Field::wire_length};
  for (unsigned f = 0; f < kByteFieldCount; ++f) all |= {static_cast<Field>(f)};
  return all;
}
constexpr Access kMoves{every_byte() | kVerdict, every_byte() | kVerdict};

/// Forwards all. Its finish stage and its twin look at every byte (`CountingFunction::watches`).
Verdict watch(PacketView& packet, unsigned) { return packet.packet->verdict; }
constexpr Access kWatch{every_byte() | kVerdict, kVerdict};

void move_bounds(PacketView& packet, std::int32_t head, std::int32_t tail) {
  packet.frame -= head;
  packet.packet->offset -= static_cast<std::uint32_t>(head);
  packet.packet->length += static_cast<std::uint32_t>(head + tail);
  packet.packet->wire_length += static_cast<std::uint32_t>(head + tail);
}

/// Adds a VLAN tag to frames, except for some ports.
Verdict tag(PacketView& packet, unsigned epoch) {
  if (packet.has_ports() && packet.udp().source_port.value() % 3 == 0) return packet.packet->verdict;
  move_bounds(packet, 4, 0);
  std::memmove(packet.frame, packet.frame + 4, 12);
  const std::uint8_t vlan[4] = {0x81, 0x00, 0x00, static_cast<std::uint8_t>(7 + epoch)};
  std::memcpy(packet.frame + 12, vlan, 4);
  return packet.packet->verdict;
}

/// Removes the tag, and drops some of the packets that have one.
Verdict untag(PacketView& packet, unsigned epoch) {
  if (packet.layout().vlan_count == 0) return packet.packet->verdict;
  std::memmove(packet.frame + 4, packet.frame, 12);
  move_bounds(packet, -4, 0);
  return (packet.frame[packet.length() - 1] + epoch) % 5 == 2 ? Verdict::drop(1) : packet.packet->verdict;
}

/// Appends a trailer of some bytes to each frame, and drops some of the frames that became longer.
Verdict pad(PacketView& packet, unsigned epoch) {
  const std::uint8_t last = packet.frame[packet.length() - 1];
  const std::int32_t bytes = 1 + last % 20;
  move_bounds(packet, 0, bytes);
  std::memset(packet.frame + packet.length() - bytes, 0xe0 + static_cast<int>(epoch % 16),
              static_cast<std::size_t>(bytes));
  return last % 11 == 4 ? Verdict::drop(0) : packet.packet->verdict;
}

/// Marks; its GPU stage punts some packets to its twin.
Verdict shy(PacketView& packet, unsigned epoch) {
  packet.packet->mark += 3 + epoch;
  return packet.packet->verdict;
}
constexpr Access kShy{kParsedFields | kVerdict | FieldSet{Field::l4_src_port, Field::mark},
                      {Field::mark, Field::verdict}};

/// Forward all; finish stage and twin cut packets in two, or answer them.
Verdict cut(PacketView& packet, unsigned) { return packet.packet->verdict; }
Verdict answer(PacketView& packet, unsigned) { return packet.packet->verdict; }

/// Longer frames continue as two, as after fragmentation. Drops packets that it has no room to cut.
void cut_one(PacketView packet, function::Emitter& emitter) {
  constexpr std::uint32_t kMost = 64;
  const std::uint32_t length = packet.length();
  if (length <= kMost) return;
  std::uint8_t* const rest = emitter.emit_unwritten(14 + length - kMost, packet);
  if (rest == nullptr) {
    packet.packet->verdict = Verdict::drop(1);
    return;
  }
  std::memcpy(rest, packet.frame, 14);
  std::memcpy(rest + 14, packet.frame + kMost, length - kMost);
  packet.packet->length = kMost;
}

/// Drops packets, and answers by the port that they arrived on.
void answer_one(PacketView packet, std::uint32_t found, unsigned epoch, function::Emitter& emitter) {
  if (!packet.packet->verdict.alive() || found % 6 != 2) return;
  EXPECT_TRUE(emitter.emit(numbered(found + epoch), packet, packet.packet->in_port));
  packet.packet->verdict = Verdict::drop(0);
}

/// Forwards what it does not join.
Verdict join(PacketView& packet, unsigned) { return packet.packet->verdict; }

/// Joined frames have at least so many bytes, and others have fewer.
constexpr std::size_t kLeastJoined = 2000;

/// Of three packets, the last becomes a frame with the bytes of all of them, as a datagram does whose fragments wait.
///
///     [a]  [b]  [c]   ─▶   consumed, consumed, [c|a|b|…]
void join_one(PacketView& packet, std::vector<Bytes>& waiting, function::Emitter& emitter) {
  const Bytes own(packet.frame, packet.frame + packet.length());
  if (waiting.size() < 2) {
    waiting.push_back(own);
    packet.packet->verdict = Verdict::consume();
    return;
  }
  Bytes all = own;
  for (const Bytes& other : std::exchange(waiting, {})) all.insert(all.end(), other.begin(), other.end());
  all.resize(std::max(all.size(), kLeastJoined));
  if (!emitter.replace_frame(packet, all.size())) {
    packet.packet->verdict = Verdict::drop(1);
    return;
  }
  std::copy(all.begin(), all.end(), packet.frame);
}

/// Packets of a batch, at most: some bursts.
constexpr std::size_t kMostPackets = 300;

struct Kind {
  const char* name;
  Verdict (*decide)(PacketView&, unsigned epoch);
  Access access;
  bool finds = false;      // reports findings to its finish stage
  bool remembers = false;  // which drops
  bool punts = false;
  FrameRoom growth{};
  bool cuts = false;
  bool answers = false;
  bool watches = false;
  bool chooses = false;  // its finish stage, which of the packets it watches
  bool joins = false;    // its twin, what its GPU stage leaves to it
};
constexpr Kind kKinds[] = {{"filter", filter, kFilter, true},
                           {"route", route, kRoute},
                           {"mark", mark, kMark},
                           {"scramble", scramble, kScramble},
                           {"colour", colour, kColour},
                           {"meter", meter, kMeter, true, true},
                           {"tag", tag, kMoves, false, false, false, {4, 0}},
                           {"untag", untag, kMoves},
                           {"pad", pad, kMoves, true, false, false, {0, 20}},
                           {"shy", shy, kShy, false, false, true},
                           {"cut", cut, kMoves, false, false, false, {}, true},
                           {"answer", answer, kMeter, true, false, false, {}, false, true},
                           {"watch", watch, kWatch, true, false, false, {}, false, false, true},
                           {"glance", watch, kWatch, true, false, false, {}, false, false, true, true},
                           {"join", join, kMoves, false, false, true, {}, false, false, false, false, true}};
constexpr int kKindCount = std::size(kKinds);
enum {
  kFilters,
  kRoutes,
  kMarks,
  kScrambles,
  kColours,
  kMeters,
  kTags,
  kUntags,
  kPads,
  kShies,
  kCuts,
  kAnswers,
  kWatches,
  kGlances,
  kJoins
};

/// A function at its place in the chain, whether it has a GPU stage, and whether it runs on the CPU nevertheless.
struct Position {
  const Kind* kind;
  bool on_gpu;
  bool placed_on_cpu = false;
};

function::NfTraits traits_of(const Position& position) {
  const Kind& kind = *position.kind;
  function::NfTraits traits{.name = kind.name, .summary = "", .cpu = kind.access, .devices = {}, .finish = {}};
  if (position.on_gpu) {
    traits.devices[kDevice] = kind.access;
    if (kind.finds) {
      traits.finish = Access{{Field::frame_shape}, {}};
      traits.findings_bytes = 4;
    }
    if (kind.watches) {
      traits.finish = Access{every_byte(), {}};
      traits.finish_waits = true;
    }
    if (kind.remembers || kind.answers) traits.finish = Access{{Field::frame_shape, Field::verdict}, kVerdict};
  }
  if (kind.cuts && position.on_gpu) traits.finish = kMoves;
  traits.emits = kind.cuts || kind.answers;
  traits.replaces_frames = kind.joins;
  traits.growth = kind.growth;
  traits.drop_reasons = kReasons;
  return traits;
}

/// A function whose CPU twin counts and remembers the same as its finish stage.
class CountingFunction final : public function::NetworkFunction {
 public:
  CountingFunction(const function::NfTraits& traits, const Kind& kind) : traits_(traits), kind_(kind) {}
  /// For the next epoch, in which it decides in another way.
  explicit CountingFunction(const CountingFunction& former)
      : state_(former.state_), traits_(former.traits_), kind_(former.kind_), epoch_(former.epoch_ + 1) {}
  const function::NfTraits& traits() const noexcept override { return traits_; }
  std::unique_ptr<function::CpuStage> make_cpu_stage() override { return std::make_unique<Stage>(*this); }
  std::unique_ptr<function::FinishStage> make_finish_stage(function::CpuStage&) override {
    return traits_.finish ? std::make_unique<Finish>(*this) : nullptr;
  }
  std::string description() const override { return kind_.name; }
  /// The packet's contribution to the sum.
  static std::uint32_t finding(PacketView packet) { return packet.has_ports() ? packet.udp().source_port.value() : 1U; }
  /// Outlives epochs.
  struct State {
    std::uint64_t sum = 0;
    std::uint64_t passed = 0;    // bytes of packets that it need not watch
    std::vector<Bytes> waiting;  // to be joined
  };
  [[nodiscard]] State& state() const { return *state_; }
  [[nodiscard]] unsigned epoch() const { return epoch_; }
  std::size_t finished = 0;  // packets that its finish stage saw
  bool consumes = false;     // which finish stages must not do
  std::function<void()> while_finishing = [] {};

 private:
  [[nodiscard]] bool passes(std::uint32_t found) const { return kind_.chooses && found % 3 != 0; }
  /// Depends on all earlier packets and their order.
  void settle(std::uint32_t found, PacketView packet, std::uint32_t length, Verdict& verdict) {
    if (passes(found)) {
      state_->passed += length;
      return;
    }
    std::uint64_t& sum = state_->sum;
    sum = sum * 31 + found + length + epoch_;
    if (kind_.watches) {
      sum = sum * 31 + packet.packet->wire_length;
      for (const std::uint8_t byte : std::span(packet.frame, packet.length())) sum = sum * 31 + byte;
    }
    if (kind_.remembers && verdict.alive() && sum % 3 == 0) verdict = Verdict::drop(sum % 2);
  }
  class Stage final : public function::CpuStage {
   public:
    explicit Stage(CountingFunction& function) : function_(function) {}
    void process(std::span<PacketView> packets) noexcept override {
      for (PacketView& packet : packets) {
        PacketDescriptor& descriptor = *packet.packet;
        const PacketDescriptor before = descriptor;
        EXPECT_LT(descriptor.offset, 1U << 24) << "positions that count from it would wrap";
        const std::uint32_t found = finding(packet);
        Verdict verdict = function_.kind_.decide(packet, function_.epoch_);
        descriptor.offset = before.offset;  // the executor sets it
        descriptor.wire_length = before.wire_length;
        if (function_.kind_.finds) function_.settle(found, packet, before.length, verdict);
        descriptor.verdict = verdict;
        if (function_.kind_.cuts) cut_one(packet, *emitter_);
        if (function_.kind_.answers) answer_one(packet, found, function_.epoch_, *emitter_);
        if (function_.kind_.joins && found % 4 == 1) join_one(packet, function_.state_->waiting, *emitter_);
      }
    }
    void set_emitter(function::Emitter& emitter) noexcept override { emitter_ = &emitter; }

   private:
    CountingFunction& function_;
    function::Emitter* emitter_ = nullptr;
  };
  class Finish final : public function::FinishStage {
   public:
    explicit Finish(CountingFunction& function) : function_(function) {}
    void finish(std::span<const PacketView> packets, std::span<const std::byte* const> findings) noexcept override {
      function_.while_finishing();
      function_.finished += packets.size();
      for (std::size_t i = 0; i < packets.size() && function_.kind_.finds; ++i) {
        std::uint32_t found = 0;
        std::memcpy(&found, findings[i], sizeof found);
        function_.settle(found, packets[i], packets[i].length(), packets[i].packet->verdict);
        if (function_.consumes) packets[i].packet->verdict = Verdict::consume();
        if (function_.kind_.answers) answer_one(packets[i], found, function_.epoch_, *emitter_);
      }
    }
    std::size_t choose(std::span<const PacketView> packets, std::span<const std::byte* const> findings,
                       std::span<std::uint8_t> chosen) noexcept override {
      if (!function_.kind_.chooses) return function::FinishStage::choose(packets, findings, chosen);
      std::size_t count = 0;
      for (std::size_t i = 0; i < packets.size(); ++i) {
        std::uint32_t found = 0;
        std::memcpy(&found, findings[i], sizeof found);
        if (function_.passes(found)) {
          function_.state_->passed += packets[i].length();
        } else {
          chosen[count++] = static_cast<std::uint8_t>(i);
        }
      }
      return count;
    }
    void take_back(std::span<PacketView> packets) noexcept override {
      for (const PacketView& packet : packets) cut_one(packet, *emitter_);
    }
    void set_emitter(function::Emitter& emitter) noexcept override { emitter_ = &emitter; }

   private:
    CountingFunction& function_;
    function::Emitter* emitter_ = nullptr;
  };
  const std::shared_ptr<State> state_ = std::make_shared<State>();
  function::NfTraits traits_;
  const Kind& kind_;
  const unsigned epoch_ = 0;
};

/// A chain of such functions with two sinks, and everything that leaves it.
/// A batch, and memory with frames that are lent to it: at any alignment, each with exactly the room that it must have.
struct BatchMemory {
  explicit BatchMemory(FrameRoom in_batches) : room(in_batches), batch(bytes, descriptors, in_batches, &regions) {
    lent_bytes.fill(kUntouched);
    region = regions.add(lent_bytes).value();
  }

  bool lend(const Bytes& frame, PortIndex in_port) {
    const std::size_t at = lent_used + kGap + room.head;
    std::ranges::copy(frame, lent_bytes.begin() + static_cast<std::ptrdiff_t>(at));
    lent_used = at + frame.size() + room.tail;
    gaps.emplace_back(at - room.head - kGap, at - room.head);
    const auto length = static_cast<std::uint32_t>(frame.size());
    return batch.lend(region, static_cast<std::uint32_t>(at), length, {1, length, in_port, LinkType::ethernet});
  }

  void expect_untouched_around_frames() const {
    for (const auto& [first, last] : gaps) {
      for (std::size_t i = first; i < last; ++i) ASSERT_EQ(lent_bytes[i], kUntouched) << "outside the room of frames";
    }
  }

  static constexpr std::uint8_t kUntouched = 0xc3;
  static constexpr std::size_t kGap = 3;
  FrameRoom room;
  alignas(kFrameAlignment) std::array<std::uint8_t, 1 << 17> bytes;
  alignas(kFrameAlignment) std::array<std::uint8_t, 1 << 17> lent_bytes;
  std::size_t lent_used = 0;
  std::vector<std::pair<std::size_t, std::size_t>> gaps;  // between frames with their room
  PacketMemory regions;
  PacketMemory::Region region = 0;
  std::vector<PacketDescriptor> descriptors = std::vector<PacketDescriptor>(kMostPackets);
  Batch batch;
};

struct Bed {
  explicit Bed(const std::vector<Position>& positions, std::vector<plan::Fork> forks = {}) {
    chain.forks = std::move(forks);
    chain.add_sink("a");
    chain.add_sink("b");
    for (const Position& position : positions) {
      const function::NfTraits traits = traits_of(position);
      chain.functions.push_back({position.kind->name, std::make_unique<CountingFunction>(traits, *position.kind)});
      if (position.placed_on_cpu) chain.functions.back().processor = function::Processor::cpu;
    }
    chain.settings.processor = kDevice;
    room = plan::growth_of(chain.traits());
    chain.settings.batch_packets = kMostPackets;
    chain.open();
    counters = std::make_unique<WorkerCounters>(chain);
  }

  void put_on_lanes(std::size_t count, Behaviour& behaviour, plan::WholeFrames whole = plan::WholeFrames::where_needed,
                    plan::Sharing sharing = plan::Sharing::packets, Taps* taps = nullptr) {
    auto planned = plan::plan_device(chain.traits(), chain.processors(), whole, sharing, chain.forks);
    ASSERT_TRUE(planned) << to_string(planned.error());
    plan = *planned;
    const std::vector<function::NfTraits> traits = chain.traits();
    room = plan::growth_of(std::span(traits).first(plan::functions_before_device(plan)));
    lane_count = plan.segments.empty() ? 0 : count;
    make_lanes = [this, traits, &behaviour] {
      ring::LaneShape shape{1 << 17,         kMostPackets,         plan::room_on_device(traits, plan),
                            plan.hash_flows, ring::Crossing::copy, plan.segments};
      if (plan::sends_packets_again(plan))
        shape.sent_bytes = FrameScratch::bytes_for(1 << 17, kMostPackets, plan::growth_of(traits));
      LaneSet set;
      for (std::size_t i = 0; i < lane_count; ++i)
        set.lanes.push_back(std::make_unique<SimulatedLane>(shape, lane_stages(), behaviour));
      return set;
    };
    on_device = true;
    executor = std::make_unique<DeviceExecutor>(chain, plan, make_lanes(), 0, *counters, taps);
    executor->begin();
  }

  /// The stages of the current epoch's functions.
  [[nodiscard]] ring::LaneStages lane_stages() const {
    ring::LaneStages stages;
    for (const ring::SegmentShape& segment : plan.segments) {
      stages.emplace_back();
      for (const auto& stage : segment.stages) {
        const Kind* const kind = kind_of(stage.function);
        const auto* const counting =
            dynamic_cast<const CountingFunction*>(chain.functions[stage.function].function.get());
        const unsigned epoch = counting == nullptr ? 0 : counting->epoch();
        stages.back().push_back(std::make_unique<ring::testing::SimulatedStage>(
            [kind, epoch](PacketView packet, std::byte* finding, const std::byte* state) {
              EXPECT_LT(packet.length(), kLeastJoined) << "a joined frame is sent to the device";
              if (state != nullptr) {
                if (finding != nullptr) std::memcpy(finding, state, 8);
                return kind->decide(packet, epoch);
              }
              const std::uint32_t found = CountingFunction::finding(packet);
              if (finding != nullptr) std::memcpy(finding, &found, sizeof found);
              if (kind->punts && found % 4 == 1) return Verdict::punt();
              return kind->decide(packet, epoch);
            }));
      }
    }
    return stages;
  }

  void begin_next_epoch() {
    for (NamedFunction& named : chain.functions) {
      auto next = std::make_unique<CountingFunction>(static_cast<const CountingFunction&>(*named.function));
      former.push_back(std::exchange(named.function, std::move(next)));
    }
    auto stages = make_host_stages(chain.functions, on_device ? &plan : nullptr);
    for (std::size_t i = 0; epochs_on_device > 0 && i < lane_count; ++i) stages->lanes.push_back(lane_stages());
    if (epochs_on_device > 0) --epochs_on_device;
    executor->begin_epoch(std::move(stages));
  }

  const Kind* kind_of(std::size_t function) const {
    for (const Kind& kind : kKinds) {
      if (chain.functions[function].name == kind.name) return &kind;
    }
    return nullptr;
  }

  /// Processes all batches, as many at a time as the executor accepts. An epoch begins before each of the batches in
  /// `reloads`, which are in ascending order, and new lanes before those in `renewals`.
  void run(const std::vector<std::vector<Bytes>>& batches, const std::vector<std::size_t>& reloads = {}) {
    std::deque<std::unique_ptr<BatchMemory>> in_flight;
    const auto retire = [&] {
      Batch* const done = executor->retire();
      if (done == nullptr) return;
      ASSERT_FALSE(in_flight.empty());
      ASSERT_EQ(done, &in_flight.front()->batch) << "out of order";
      in_flight.front()->expect_untouched_around_frames();
      in_flight.pop_front();
    };
    std::uint64_t rounds = 0;
    bool changes = false;
    bool renews = false;
    const auto end_former = [&] {
      changes = changes && executor->take_ended() == nullptr;
      renews = renews && executor->take_ended_lanes() == nullptr;
    };
    const auto end_changes = [&] {
      for (end_former(); changes || renews; end_former()) {
        ASSERT_NO_FATAL_FAILURE(retire());
        ASSERT_LT(++rounds, 1'000'000U) << "the former epoch never ends";
      }
    };
    std::size_t number = 0;
    for (const auto& frames : batches) {
      if (std::ranges::find(reloads, number) != reloads.end()) {
        ASSERT_NO_FATAL_FAILURE(end_changes());
        begin_next_epoch();
        changes = true;
      }
      if (std::ranges::find(renewals, number) != renewals.end()) {
        ASSERT_NO_FATAL_FAILURE(end_changes());
        at_renewal();
        executor->begin_lanes(std::make_unique<LaneSet>(make_lanes()));
        renews = true;
      }
      ++number;
      auto memory = std::make_unique<BatchMemory>(room);
      for (const Bytes& frame : frames) {
        const auto in_port = static_cast<PortIndex>(chain.forks.empty() ? 0 : memory->batch.size() % 3 % 2);
        ASSERT_TRUE(lends(packets_in++) ? memory->lend(frame, in_port)
                                        : testing::append(memory->batch, frame, in_port));
      }
      while (!executor->submit(memory->batch)) {
        ASSERT_NO_FATAL_FAILURE(retire());
        ASSERT_LT(++rounds, 1'000'000U) << "it never ends";
      }
      in_flight.push_back(std::move(memory));
    }
    while (!in_flight.empty()) {
      ASSERT_NO_FATAL_FAILURE(retire());
      ASSERT_LT(++rounds, 1'000'000U) << "it never ends";
    }
    EXPECT_EQ(executor->retire(), nullptr);
    end_former();
    EXPECT_FALSE(changes) << "nothing is in flight, and the former epoch has not ended";
    EXPECT_FALSE(renews) << "nothing is in flight, and the former lanes are still used";
    executor->end();
  }

  FakeChain chain;
  FrameRoom room;                                                                     // of frames in batches
  std::function<bool(std::size_t packet)> lends = [](std::size_t) { return false; };  // instead of being copied
  std::size_t packets_in = 0;
  plan::DevicePlan plan;
  std::unique_ptr<WorkerCounters> counters;
  bool on_device = false;  // even if no function has a stage there
  std::size_t lane_count = 0;
  std::function<LaneSet()> make_lanes;
  std::vector<std::size_t> renewals;
  std::function<void()> at_renewal = [] {};
  std::size_t epochs_on_device = SIZE_MAX;                         // of the next ones; the device is lost before others
  std::vector<std::unique_ptr<function::NetworkFunction>> former;  // of former epochs
  std::unique_ptr<Executor> executor;
};

void expect_equal(Bed& device, Bed& cpu) {
  for (std::size_t port = 0; port < cpu.chain.ports.size(); ++port) {
    const auto& here = static_cast<testing::FakePort&>(*device.chain.ports[port].port).sent[0];
    const auto& there = static_cast<testing::FakePort&>(*cpu.chain.ports[port].port).sent[0];
    ASSERT_EQ(here.size(), there.size()) << "port " << port;
    for (std::size_t i = 0; i < here.size(); ++i) {
      ASSERT_EQ(here[i].bytes, there[i].bytes) << "packet " << i << " of port " << port;
      ASSERT_EQ(here[i].descriptor.mark, there[i].descriptor.mark) << "packet " << i << " of port " << port;
      ASSERT_EQ(here[i].descriptor.wire_length, there[i].descriptor.wire_length) << "packet " << i;
    }
  }
  const auto expect_same = [](const report::Traffic& a, const report::Traffic& b, const std::string& what) {
    EXPECT_EQ(a.packets.get(), b.packets.get()) << what;
    EXPECT_EQ(a.bytes.get(), b.bytes.get()) << what;
  };
  expect_same(device.counters->forwarded, cpu.counters->forwarded, "forwarded");
  expect_same(device.counters->generated, cpu.counters->generated, "generated");
  for (std::size_t f = 0; f < cpu.chain.functions.size(); ++f) {
    const std::string name = cpu.chain.functions[f].name + " " + std::to_string(f);
    const FunctionCounters& here = device.counters->functions[f];
    const FunctionCounters& there = cpu.counters->functions[f];
    expect_same(here.in, there.in, name + " in");
    expect_same(here.forwarded, there.forwarded, name + " forwarded");
    for (std::size_t r = 0; r < kReasons.size(); ++r) expect_same(here.dropped[r], there.dropped[r], name + " dropped");
    EXPECT_EQ(static_cast<CountingFunction&>(*device.chain.functions[f].function).state().sum,
              static_cast<CountingFunction&>(*cpu.chain.functions[f].function).state().sum)
        << name;
    EXPECT_EQ(static_cast<CountingFunction&>(*device.chain.functions[f].function).state().passed,
              static_cast<CountingFunction&>(*cpu.chain.functions[f].function).state().passed)
        << name;
  }
}

/// Frames of several flows and TTLs. Some have headers longer than what crosses as headers.
Bytes frame(std::uint64_t number) {
  if (number % 11 == 7) {
    auto builder = penstock::testing::packet().eth().ipv6("2001:db8::1", "2001:db8::2");
    for (int n = 0; n < 4; ++n) builder.extension(ip_protocol::kDestinationOptions, 2);
    return builder.udp(static_cast<std::uint16_t>(1024 + number % 9), 53).payload(std::string(40, 'v')).bytes();
  }
  Bytes bytes = numbered(number, static_cast<unsigned>(number % 17));
  if (number % 13 == 5) bytes[22] = 1;  // TTL
  return bytes;
}

std::vector<std::vector<Bytes>> batches_of(std::size_t count, std::size_t size) {
  std::vector<std::vector<Bytes>> batches;
  std::uint64_t number = 0;
  for (std::size_t b = 0; b < count; ++b) {
    batches.emplace_back();
    for (std::size_t i = 0; i < size; ++i) batches.back().push_back(frame(number++));
  }
  return batches;
}

std::vector<Position> chain_of(std::initializer_list<std::pair<int, bool>> positions) {
  std::vector<Position> chain;
  for (const auto& [kind, on_gpu] : positions) chain.push_back({&kKinds[kind], on_gpu});
  return chain;
}

void expect_as_on_the_cpu(
    const std::vector<Position>& positions, const std::vector<std::vector<Bytes>>& batches, Behaviour& behaviour,
    std::size_t lanes, plan::WholeFrames whole = plan::WholeFrames::where_needed,
    plan::Sharing sharing = plan::Sharing::packets, const std::vector<plan::Fork>& forks = {},
    const std::vector<std::size_t>& reloads = {},
    const std::function<bool(std::size_t)>& lends = [](std::size_t) { return false; },
    std::size_t epochs_on_device = SIZE_MAX) {
  Bed device(positions, forks);
  device.lends = lends;
  device.epochs_on_device = epochs_on_device;
  ASSERT_NO_FATAL_FAILURE(device.put_on_lanes(lanes, behaviour, whole, sharing));
  ASSERT_NO_FATAL_FAILURE(device.run(batches, reloads));
  Bed cpu(positions, forks);
  cpu.executor = std::make_unique<CpuExecutor>(cpu.chain, 0, *cpu.counters, nullptr);
  cpu.executor->begin();
  ASSERT_NO_FATAL_FAILURE(cpu.run(batches, reloads));
  ASSERT_NO_FATAL_FAILURE(expect_equal(device, cpu));
  EXPECT_EQ(behaviour.in_flight, 0U);
  EXPECT_EQ(behaviour.scattered, 0U);
}

TEST(DeviceExecutor, DoesWhatTheCpuDoes) {
  Behaviour behaviour;
  expect_as_on_the_cpu(chain_of({{0, true}, {1, true}}), batches_of(20, 64), behaviour, 4);
  EXPECT_EQ(behaviour.most_in_flight, 4U);
}

TEST(DeviceExecutor, DoesTheSameWithFramesThatAreLent) {
  const std::vector<std::vector<Position>> chains{
      chain_of({{kFilters, true}, {kRoutes, true}}),  // headers and records cross
      chain_of({{kFilters, true}, {kScrambles, true}, {kTags, true}, {kRoutes, true}}),
      chain_of({{kPads, false}, {kRoutes, true}, {kMarks, false}, {kRoutes, true}, {kUntags, false}}),
      chain_of({{kJoins, false}, {kFilters, true}, {kShies, true}}),
      chain_of({{kTags, false}, {kPads, false}, {kCuts, false}}),
  };
  for (const auto& positions : chains) {
    for (const std::size_t every : {1, 2, 5}) {
      SCOPED_TRACE(positions.front().kind->name + std::string(", lent: one of ") + std::to_string(every));
      Behaviour behaviour;
      expect_as_on_the_cpu(positions, batches_of(20, 50), behaviour, 3, plan::WholeFrames::where_needed,
                           plan::Sharing::packets, {}, {}, [every](std::size_t packet) { return packet % every == 0; });
    }
  }
}

TEST(DeviceExecutor, CopiesWholeFramesBack) {
  Behaviour behaviour;
  expect_as_on_the_cpu(chain_of({{0, true}, {3, true}, {1, true}}), batches_of(20, 33), behaviour, 3);
  expect_as_on_the_cpu(chain_of({{0, true}, {1, true}}), batches_of(20, 33), behaviour, 3, plan::WholeFrames::always);
}

TEST(DeviceExecutor, SendsPacketsForEachFunctionIfTheyAreNotShared) {
  for (const plan::WholeFrames whole : {plan::WholeFrames::where_needed, plan::WholeFrames::always}) {
    for (const plan::Sharing sharing : {plan::Sharing::parsing, plan::Sharing::stack, plan::Sharing::none}) {
      Behaviour behaviour;
      expect_as_on_the_cpu(chain_of({{0, true}, {3, true}, {1, false}, {1, true}, {2, true}, {4, true}}),
                           batches_of(20, 33), behaviour, 3, whole, sharing);
    }
  }
}

TEST(DeviceExecutor, RunsFunctionsOnTheCpuBetweenSegments) {
  Behaviour behaviour;
  expect_as_on_the_cpu(chain_of({{2, false}, {0, true}, {1, false}, {4, true}, {0, true}}), batches_of(20, 50),
                       behaviour, 4);
  expect_as_on_the_cpu(chain_of({{3, true}, {1, false}, {2, true}, {4, false}}), batches_of(20, 50), behaviour, 4);
}

TEST(DeviceExecutor, RunsFunctionsThatChangeFramesOnEitherProcessor) {
  const std::vector<std::vector<Position>> chains{
      chain_of({{kFilters, true}, {kScrambles, false}, {kMarks, true}, {kRoutes, true}}),  // in place
      chain_of({{kMarks, true}, {kTags, false}, {kFilters, true}}),                        // longer
      chain_of({{kTags, true}, {kPads, false}, {kUntags, true}, {kRoutes, true}}),
      chain_of({{kTags, true}, {kUntags, false}, {kScrambles, true}, {kPads, false}, {kWatches, true}, {kPads, true}}),
      chain_of({{kShies, true}, {kPads, false}, {kFilters, true}, {kTags, false}, {kMarks, true}, {kCuts, false}}),
      chain_of({{kCuts, true}, {kFilters, true}, {kJoins, false}, {kMarks, true}, {kMeters, true}}),
  };
  for (const auto& positions : chains) {
    for (const unsigned failing : {0U, 2U, 5U}) {
      Behaviour behaviour;
      unsigned calls = 0;
      if (failing > 0) behaviour.fails = [&] { return ++calls % failing == 0; };
      SCOPED_TRACE(positions[1].kind->name + std::string(", failing ") + std::to_string(failing));
      expect_as_on_the_cpu(positions, batches_of(20, 64), behaviour, 3);
    }
  }
}

TEST(DeviceExecutor, RunsFunctionsOnTheCpuThoughTheyHaveADeviceStage) {
  std::vector<Position> positions = chain_of({{kMeters, true}, {kPads, true}, {kWatches, true}, {kRoutes, true}});
  positions[1].placed_on_cpu = positions[2].placed_on_cpu = true;
  Behaviour behaviour;
  expect_as_on_the_cpu(positions, batches_of(20, 64), behaviour, 3);
  Bed bed(positions);
  ASSERT_NO_FATAL_FAILURE(bed.put_on_lanes(2, behaviour));
  ASSERT_NO_FATAL_FAILURE(bed.run(batches_of(4, 64)));
  EXPECT_EQ(static_cast<CountingFunction&>(*bed.chain.functions[2].function).finished, 0U) << "on the twin";
  EXPECT_EQ(bed.counters->device.segments.get(), 8U);
}

TEST(DeviceExecutor, LeavesPuntedPacketsToTheTwins) {
  Behaviour behaviour;
  Bed device(chain_of({{0, true}, {1, true}}));
  ASSERT_NO_FATAL_FAILURE(device.put_on_lanes(2, behaviour));
  ASSERT_NO_FATAL_FAILURE(device.run(batches_of(2, 55)));
  EXPECT_EQ(device.counters->device.punted.get(), 10U) << "every eleventh has longer headers than cross";
}

TEST(DeviceExecutor, FinishesFailedBatchesOnTheCpu) {
  Behaviour behaviour;
  unsigned calls = 0;
  behaviour.fails = [&] { return ++calls % 5 == 0; };
  expect_as_on_the_cpu(chain_of({{0, true}, {1, true}}), batches_of(40, 20), behaviour, 4);
  EXPECT_GT(behaviour.abandoned, 0U);

  behaviour.fails = [] { return false; };
  behaviour.refuses = [&] { return ++calls % 7 == 0; };
  expect_as_on_the_cpu(chain_of({{3, true}, {1, false}, {2, true}, {4, false}}), batches_of(40, 20), behaviour, 4);
}

TEST(DeviceExecutor, ContinuesOnTheCpuAfterTheDeviceIsLost) {
  Behaviour behaviour;
  unsigned calls = 0;
  behaviour.fails = [&] { return ++calls > 10; };
  expect_as_on_the_cpu(chain_of({{0, true}, {1, true}}), batches_of(60, 20), behaviour, 4);
  EXPECT_LE(behaviour.abandoned, 4 * DeviceExecutor::kMostFailures);
}

TEST(DeviceExecutor, BeginsEpochsWithoutADeviceThatIsLost) {
  const auto positions = chain_of({{0, true}, {1, false}, {1, true}});
  const auto batches = batches_of(40, 20);
  constexpr std::size_t kLanes = 3, kEpochsOnDevice = 1;
  const std::vector<std::size_t> reloads{10, 20, 30};
  for (const bool fails : {false, true}) {
    SCOPED_TRACE(fails ? "batches in flight fail" : "batches in flight are done");
    Behaviour behaviour;
    behaviour.polls_until_done = [] { return 5; };
    Bed bed(positions);
    ASSERT_NO_FATAL_FAILURE(bed.put_on_lanes(kLanes, behaviour));
    bed.epochs_on_device = kEpochsOnDevice;
    std::size_t starts = 0, starts_after = 0;
    behaviour.fails = [&] {
      const bool lost = bed.former.size() > kEpochsOnDevice * positions.size();
      ++(lost ? starts_after : starts);
      return lost && fails;
    };
    ASSERT_NO_FATAL_FAILURE(bed.run(batches, reloads));
    EXPECT_GT(starts, reloads[1]);
    EXPECT_LE(starts_after, kLanes) << "of segments of batches that were in flight";
    EXPECT_EQ(bed.counters->device.lanes_lost.get(), kLanes);
    EXPECT_EQ(behaviour.in_flight, 0U);
  }
  Behaviour behaviour;
  expect_as_on_the_cpu(
      positions, batches, behaviour, kLanes, plan::WholeFrames::where_needed, plan::Sharing::packets, {}, reloads,
      [](std::size_t) { return false; }, kEpochsOnDevice);
}

TEST(DeviceExecutor, GivesUpADeviceThatFailsEachBatchInALaterSegment) {
  Behaviour behaviour;
  unsigned starts = 0;
  behaviour.refuses = [&] { return ++starts % 2 == 0; };  // with one lane: every second segment of two
  Bed device(chain_of({{0, true}, {1, false}, {2, true}}));
  ASSERT_NO_FATAL_FAILURE(device.put_on_lanes(1, behaviour));
  ASSERT_EQ(device.plan.segments.size(), 2U);
  ASSERT_NO_FATAL_FAILURE(device.run(batches_of(20, 20)));
  EXPECT_EQ(device.counters->device.failures.get(), DeviceExecutor::kMostFailures);
  EXPECT_EQ(device.counters->device.lanes_lost.get(), 1U);
}

//   batch      0 … 9      10 … 29            30 … 49            50 … 59
//   lanes      work       fail, are lost     are new, work      are new again
TEST(DeviceExecutor, GoesOnWithNewLanesAfterItHasLostItsOwn) {
  for (const auto& positions :
       {chain_of({{kFilters, true}, {kRoutes, true}}), chain_of({{kMeters, true}, {kMarks, false}, {kMeters, true}}),
        chain_of({{kScrambles, true}, {kTags, false}, {kPads, false}})}) {
    for (const bool reloads_meanwhile : {false, true}) {
      SCOPED_TRACE(reloads_meanwhile);
      Behaviour behaviour;
      Bed device(positions);
      unsigned starts = 0;
      std::size_t renewals = 0;
      behaviour.polls_until_done = [&] { return ++starts % 5; };
      behaviour.fails = [&] { return renewals == 0 && device.packets_in > 10 * 64; };
      device.renewals = {30, 50};
      const std::vector<std::size_t> reloads =
          reloads_meanwhile ? std::vector<std::size_t>{5, 20, 25, 40, 55} : std::vector<std::size_t>{};
      device.epochs_on_device = 1;  // the others are made while the device is lost
      device.at_renewal = [&] {
        ++renewals;
        device.epochs_on_device = SIZE_MAX;
      };
      ASSERT_NO_FATAL_FAILURE(device.put_on_lanes(3, behaviour));
      ASSERT_NO_FATAL_FAILURE(device.run(batches_of(60, 64), reloads));
      Bed cpu(positions);
      cpu.executor = std::make_unique<CpuExecutor>(cpu.chain, 0, *cpu.counters, nullptr);
      cpu.executor->begin();
      ASSERT_NO_FATAL_FAILURE(cpu.run(batches_of(60, 64), reloads));
      ASSERT_NO_FATAL_FAILURE(expect_equal(device, cpu));
      EXPECT_EQ(renewals, 2U);
      EXPECT_EQ(behaviour.in_flight, 0U);
      EXPECT_EQ(device.counters->device.lanes_lost.get(), 3U);
      EXPECT_GE(device.counters->device.segments.get(), 10U + 30U);
    }
  }
}

/// Its twin and its state stage note the packets that they see.
class WatchingFunction final : public function::NetworkFunction {
 public:
  explicit WatchingFunction(std::vector<std::uint64_t>& seen) : seen_(seen) {
    traits_ = {.name = "filter", .summary = "", .cpu = kFilter, .devices = {{kDevice, kFilter}}, .finish = {}};
    traits_.state_bytes = 8;
    traits_.drop_reasons = kReasons;
  }
  const function::NfTraits& traits() const noexcept override { return traits_; }
  std::unique_ptr<function::CpuStage> make_cpu_stage() override { return std::make_unique<Twin>(seen_); }
  std::unique_ptr<function::StateStage> make_state_stage(function::CpuStage& /*twin*/) override {
    return std::make_unique<State>(seen_);
  }
  std::string description() const override { return "watches packets"; }

 private:
  struct Twin final : function::CpuStage {
    explicit Twin(std::vector<std::uint64_t>& seen_packets) : seen(seen_packets) {}
    void process(std::span<PacketView> packets) noexcept override {
      for (PacketView& packet : packets) {
        seen.push_back(number_of(packet));
        packet.packet->verdict = filter(packet);
      }
    }
    std::vector<std::uint64_t>& seen;
  };
  struct State final : function::StateStage {
    explicit State(std::vector<std::uint64_t>& seen_packets) : seen(seen_packets) {}
    void fill(std::span<const PacketView> packets, std::span<std::byte* const> states) noexcept override {
      for (std::size_t i = 0; i < packets.size(); ++i) {
        seen.push_back(number_of(packets[i]));
        std::memset(states[i], 0, 8);
      }
    }
    std::vector<std::uint64_t>& seen;
  };
  std::vector<std::uint64_t>& seen_;
  function::NfTraits traits_;
};

TEST(DeviceExecutor, ShowsItsFunctionsThePacketsInOrderWhenItGetsNewLanes) {
  Behaviour behaviour;
  std::size_t renewals = 0;
  behaviour.polls_until_done = [] { return 3U; };
  Bed bed(chain_of({{kFilters, true}}));
  behaviour.fails = [&] { return renewals == 0 && bed.packets_in > 5 * 64; };
  std::vector<std::uint64_t> seen;
  bed.chain.functions[0].function = std::make_unique<WatchingFunction>(seen);
  bed.renewals = {20};
  bed.at_renewal = [&] { ++renewals; };
  std::vector<std::vector<Bytes>> batches(40);
  for (std::uint64_t number = 0; number < 40 * 64; ++number) batches[number / 64].push_back(numbered(number));
  ASSERT_NO_FATAL_FAILURE(bed.put_on_lanes(3, behaviour));
  ASSERT_NO_FATAL_FAILURE(bed.run(batches));
  EXPECT_EQ(bed.counters->device.lanes_lost.get(), 3U);
  EXPECT_GE(bed.counters->device.segments.get(), 5U + 20U);
  std::uint64_t next = 0;
  for (const std::uint64_t number : seen) {
    ASSERT_LE(number, next) << "before packets that came earlier";
    next = std::max(next, number + 1);
  }
  EXPECT_EQ(next, 40 * 64U);
}

TEST(DeviceExecutor, WarmsUpEachLaneWithBatchesOfAllKinds) {
  Behaviour behaviour;
  std::size_t starts = 0;
  behaviour.refuses = [&] { return ++starts == 3; };  // once: the segment is started again
  Bed bed(chain_of({{0, true}, {1, false}, {2, true}}));
  ASSERT_NO_FATAL_FAILURE(bed.put_on_lanes(2, behaviour));
  ASSERT_EQ(bed.plan.segments.size(), 2U);
  auto& executor = static_cast<DeviceExecutor&>(*bed.executor);
  ring::PacketRing ring({1 << 15, 64, 1, 1 << 20, 1, {}});
  Batch& batch = *ring.filling();
  EXPECT_EQ(executor.warm_up(batch), WarmUp::done);
  EXPECT_EQ(starts, 2 * 2 * ring::kBatchOfEachWay.size() + 1);
  EXPECT_EQ(behaviour.in_flight, 0U);
  EXPECT_TRUE(batch.empty());
  EXPECT_EQ(bed.counters->device.segments.get(), 0U) << "no packet's";

  behaviour.fails = [] { return true; };
  EXPECT_EQ(executor.warm_up(batch), WarmUp::failed);
  EXPECT_TRUE(batch.empty());
  executor.end();
}

TEST(DeviceExecutor, GivesUpADeviceThatHangsAtItsFirstBatch) {
  Behaviour behaviour;
  std::size_t starts = 0;
  behaviour.polls_until_done = [&] { return ++starts, std::numeric_limits<unsigned>::max(); };
  Bed bed(chain_of({{0, true}}));
  ASSERT_NO_FATAL_FAILURE(bed.put_on_lanes(2, behaviour));
  auto& executor = static_cast<DeviceExecutor&>(*bed.executor);
  ring::PacketRing ring({1 << 15, 64, 1, 1 << 20, 1, {}});
  EXPECT_EQ(executor.warm_up(*ring.filling(), std::chrono::milliseconds{1}), WarmUp::hangs);
  EXPECT_EQ(starts, 1U) << "no lane is tried after the one that hangs";
  EXPECT_EQ(behaviour.abandoned, 0U) << "which would wait for it";
  EXPECT_TRUE(ring.filling()->empty());
}

/// Many workers with small batches would only wait for each other.
TEST(DeviceExecutor, TakesASecondBatchEarlyUnlessItIsSmallAndManyWorkersUseItsDevice) {
  struct Case {
    unsigned workers;
    std::size_t gpus, packets;
    bool takes_second;
  };
  constexpr std::size_t kFrame = 1504, kSmall = 1, kLarge = (std::size_t{256} << 10) / kFrame + 1;
  for (const Case& c : {Case{1, 1, kSmall, true}, Case{3, 1, kSmall, true}, Case{4, 1, kSmall, false},
                        Case{16, 1, kSmall, false}, Case{4, 2, kSmall, true}, Case{4, 1, kLarge, true}}) {
    SCOPED_TRACE(fmt::format("{} workers, {} GPUs, {} packets", c.workers, c.gpus, c.packets));
    Behaviour behaviour;
    behaviour.polls_until_done = [] { return 3; };
    Bed bed(chain_of({{0, true}}));
    bed.chain.settings.workers = c.workers;
    bed.chain.settings.gpus.resize(c.gpus);
    ASSERT_NO_FATAL_FAILURE(bed.put_on_lanes(3, behaviour));
    ring::PacketRing ring({1 << 20, 1024, 1, 1 << 21, 1, {}});
    Batch& open = *ring.filling();
    const Bytes frame(kFrame);
    for (std::size_t i = 0; i < c.packets; ++i) ASSERT_TRUE(testing::append(open, frame));
    std::array<BatchMemory, 2> sent{BatchMemory(bed.room), BatchMemory(bed.room)};
    for (BatchMemory& memory : sent) testing::append(memory.batch, numbered(0));
    EXPECT_TRUE(bed.executor->takes_early(open));
    ASSERT_TRUE(bed.executor->submit(sent[0].batch));
    EXPECT_EQ(bed.executor->takes_early(open), c.takes_second);
    ASSERT_TRUE(bed.executor->submit(sent[1].batch)) << "one that is full or has waited long enough";
    EXPECT_FALSE(bed.executor->takes_early(open));
    for (int left = 2, polls = 0; left > 0 && polls < 100; ++polls) left -= bed.executor->retire() != nullptr ? 1 : 0;
    EXPECT_TRUE(bed.executor->takes_early(open));
    bed.executor->end();
  }
}

TEST(DeviceExecutor, CountsSegmentsAndTheBytesThatThePlanNames) {
  Behaviour behaviour;
  Bed bed(chain_of({{0, true}, {1, true}}));
  ASSERT_NO_FATAL_FAILURE(bed.put_on_lanes(2, behaviour));
  std::vector<Bytes> frames(64, numbered(0));  // all of one length, and none is dropped
  ASSERT_NO_FATAL_FAILURE(bed.run({frames, frames, frames}));
  const plan::CrossingBytes planned = plan::crossing_bytes(bed.plan, static_cast<std::uint32_t>(frames[0].size()));
  EXPECT_EQ(bed.counters->forwarded.packets.get(), 3 * 64U);
  EXPECT_EQ(bed.counters->device.segments.get(), 3U);
  EXPECT_EQ(bed.counters->functions[0].segments.get(), 3U);
  EXPECT_GT(bed.counters->functions[0].segment_time_ns.get(), 0U);
  EXPECT_EQ(bed.counters->device.bytes_to_device.get(), 3 * 64 * planned.to_device);
  EXPECT_EQ(bed.counters->device.bytes_to_host.get(), 3 * 64 * planned.to_host);
}

TEST(DeviceExecutor, DropsWhatAFinishStageDropsWhateverLaterFunctionsDid) {
  Behaviour behaviour;
  for (const auto sharing : {plan::Sharing::packets, plan::Sharing::parsing, plan::Sharing::none}) {
    // For packets that the meter drops, the device has already run the next functions: filter, route, scramble.
    expect_as_on_the_cpu(chain_of({{kMeters, true}, {kFilters, true}, {kRoutes, true}}), batches_of(20, 64), behaviour,
                         3, plan::WholeFrames::where_needed, sharing);
    expect_as_on_the_cpu(chain_of({{kFilters, true}, {kMeters, true}, {kScrambles, true}, {kMeters, true}}),
                         batches_of(20, 64), behaviour, 3, plan::WholeFrames::where_needed, sharing);
    // If a later segment follows on the device, it must learn of the meter's drops. Punted packets are counted at their
    // place in the order.
    expect_as_on_the_cpu(chain_of({{kMeters, true}, {kMarks, false}, {kMeters, true}, {kShies, true}, {kMeters, true}}),
                         batches_of(20, 64), behaviour, 3, plan::WholeFrames::where_needed, sharing);
  }
}

/// Sends each packet's number as its state; the device returns it as the finding.
class NumberingFunction final : public function::NetworkFunction {
 public:
  explicit NumberingFunction(bool finish_waits) {
    traits_ = {.name = "filter",
               .summary = "",
               .cpu = kFilter,
               .devices = {{kDevice, kFilter}},
               .finish = Access{every_byte(), {}}};
    traits_.findings_bytes = traits_.state_bytes = 8;
    traits_.finish_waits = finish_waits;
    traits_.drop_reasons = kReasons;
  }
  const function::NfTraits& traits() const noexcept override { return traits_; }
  std::unique_ptr<function::CpuStage> make_cpu_stage() override { return std::make_unique<Stage>(); }
  std::unique_ptr<function::StateStage> make_state_stage(function::CpuStage& /*twin*/) override {
    return std::make_unique<State>(*this);
  }
  std::unique_ptr<function::FinishStage> make_finish_stage(function::CpuStage&) override {
    return std::make_unique<Finish>(*this);
  }
  std::string description() const override { return "numbers packets"; }

  std::uint64_t numbered = 0;
  std::vector<std::uint64_t> sent, found;  // of the packets that the finish stage saw
  std::vector<std::uint64_t> handed_back;  // of those that came to the twin instead; 0: had no number

 private:
  struct Stage final : function::CpuStage {
    void process(std::span<PacketView> packets) noexcept override {
      for (PacketView& packet : packets) packet.packet->verdict = filter(packet);
    }
  };
  struct State final : function::StateStage {
    explicit State(NumberingFunction& its_function) : function(its_function) {}
    void fill(std::span<const PacketView> packets, std::span<std::byte* const> states) noexcept override {
      ASSERT_EQ(packets.size(), states.size());
      for (std::size_t i = 0; i < packets.size(); ++i) {
        std::memcpy(states[i], &++function.numbered, 8);
        number_of_packet[packets[i].packet] = function.numbered;
      }
    }
    void hand_back(std::span<const PacketView> packets, std::span<const std::byte* const> states) noexcept override {
      ASSERT_EQ(packets.size(), states.size());
      for (std::size_t i = 0; i < packets.size(); ++i) {
        std::memcpy(&function.handed_back.emplace_back(), states[i], 8);
        if (function.handed_back.back() == 0) continue;
        ASSERT_EQ(function.handed_back.back(), number_of_packet[packets[i].packet]);
      }
    }
    NumberingFunction& function;
    std::map<const PacketDescriptor*, std::uint64_t> number_of_packet;
  };
  struct Finish final : function::FinishStage {
    explicit Finish(NumberingFunction& its_function) : function(its_function) {}
    void take_states(std::span<const std::byte* const> given) noexcept override { states = given; }
    void finish(std::span<const PacketView> packets, std::span<const std::byte* const> findings) noexcept override {
      ASSERT_EQ(packets.size(), states.size());
      for (std::size_t i = 0; i < packets.size(); ++i) {
        std::memcpy(&function.sent.emplace_back(), states[i], 8);
        std::memcpy(&function.found.emplace_back(), findings[i], 8);
      }
    }
    NumberingFunction& function;
    std::span<const std::byte* const> states;
  };
  function::NfTraits traits_;
};

//   batch 1 ─▶ state stage ─▶ lane ··············· (slow) ·▶ finish stage
//   batch 2 ───▶ state stage ─▶ lane ····························▶ finish stage
TEST(DeviceExecutor, SendsEachPacketsStateInPacketOrderAndShowsItToTheFinishStage) {
  for (const bool waits : {false, true}) {
    for (const bool fails : {false, true}) {
      SCOPED_TRACE(std::string(waits ? "after" : "before") + " sending" + (fails ? ", some batches fail" : ""));
      Behaviour behaviour;
      unsigned starts = 0;
      behaviour.polls_until_done = [&] { return ++starts % 7; };
      behaviour.fails = [&] { return fails && starts % 3 == 0; };
      Bed bed(chain_of({{waits ? kFilters : kShies, true}, {kFilters, true}, {kRoutes, true}}));
      auto numbering = std::make_unique<NumberingFunction>(waits);
      NumberingFunction& function = *numbering;
      bed.chain.functions[1].function = std::move(numbering);
      ASSERT_NO_FATAL_FAILURE(bed.put_on_lanes(3, behaviour));
      ASSERT_NO_FATAL_FAILURE(bed.run(batches_of(20, 64)));
      EXPECT_EQ(function.numbered, 20 * 64U);
      EXPECT_GT(function.sent.size(), 200U);
      EXPECT_EQ(function.found, function.sent) << "the device had other states than the host sent";
      EXPECT_EQ(std::ranges::adjacent_find(function.sent, std::ranges::greater_equal{}), function.sent.end())
          << "out of order";
      EXPECT_GT(behaviour.most_in_flight, 1U);
    }
  }
}

/// Each packet for which a state was filled comes to the finish stage or, with its state, back to the twin. Packets
/// that the twin of an earlier function has moved to other frames come to the twin without any.
TEST(DeviceExecutor, HandsBackTheStatesOfPacketsThatTheDeviceDoesNotProcess) {
  for (const bool joins : {false, true}) {
    for (const unsigned failing : {0U, 1U, 3U}) {
      SCOPED_TRACE(std::string(joins ? "joins, " : "") + "fails: " + std::to_string(failing));
      Behaviour behaviour;
      unsigned starts = 0;
      behaviour.polls_until_done = [&] { return ++starts % 7; };
      behaviour.fails = [&] { return failing > 0 && starts % failing == 0; };
      behaviour.refuses = [&] { return failing > 0 && starts % 5 == 4; };
      Bed bed(chain_of({{joins ? kJoins : kMarks, false}, {kFilters, true}, {kShies, true}}));
      auto numbering = std::make_unique<NumberingFunction>(false);
      NumberingFunction& function = *numbering;
      bed.chain.functions[1].function = std::move(numbering);
      ASSERT_NO_FATAL_FAILURE(bed.put_on_lanes(3, behaviour));
      ASSERT_NO_FATAL_FAILURE(bed.run(batches_of(20, 64)));
      std::vector<std::uint64_t> all = function.sent;
      for (const std::uint64_t number : function.handed_back) {
        if (number != 0) all.push_back(number);
      }
      EXPECT_EQ(all.size() < function.sent.size() + function.handed_back.size(), joins);
      EXPECT_GT(all.size(), function.sent.size());
      EXPECT_EQ(function.sent.empty(), failing == 1);
      std::ranges::sort(all);
      std::vector<std::uint64_t> each(function.numbered);
      std::iota(each.begin(), each.end(), 1);
      EXPECT_EQ(all, each);
    }
  }
}

TEST(DeviceExecutor, CountsTheStateThatCrosses) {
  Behaviour behaviour;
  Bed bed(chain_of({{kFilters, true}}));
  bed.chain.functions[0].function = std::make_unique<NumberingFunction>(false);
  ASSERT_NO_FATAL_FAILURE(bed.put_on_lanes(2, behaviour));
  const Bytes frame = numbered(0);
  ASSERT_NO_FATAL_FAILURE(bed.run({std::vector<Bytes>(64, frame)}));
  const auto length = static_cast<std::uint32_t>(frame.size());
  const plan::CrossingBytes planned = plan::crossing_bytes(bed.plan, length);
  EXPECT_EQ(planned.to_device,
            ring::kIndexBytes + std::min<std::size_t>(aligned_frame(length), ring::kHeaderBytes) + 8);
  EXPECT_EQ(bed.counters->device.bytes_to_device.get(), 64 * planned.to_device);
}

TEST(DeviceExecutor, CountsTheBytesThatEachFunctionSaw) {
  Behaviour behaviour;
  expect_as_on_the_cpu(chain_of({{kTags, true}, {kFilters, true}, {kPads, true}, {kMeters, true}, {kUntags, true}}),
                       batches_of(20, 64), behaviour, 3);
  Bed bed(chain_of({{kTags, true}, {kPads, true}}));
  ASSERT_NO_FATAL_FAILURE(bed.put_on_lanes(2, behaviour));
  ASSERT_EQ(bed.plan.segments.size(), 1U);
  const Bytes frame = numbered(9, 2);  // of port 1026: not tagged, and padded by 10 bytes
  ASSERT_NO_FATAL_FAILURE(bed.run({std::vector<Bytes>(64, frame)}));
  const auto length = static_cast<std::uint32_t>(frame.size());
  EXPECT_EQ(bed.counters->functions[1].in.bytes.get(), 64 * length);
  EXPECT_EQ(bed.counters->functions[1].forwarded.bytes.get(), 64 * (length + 10));
  const plan::CrossingBytes planned = plan::crossing_bytes(bed.plan, length);
  const std::uint64_t longer = aligned_frame(length + 10) - aligned_frame(length);
  EXPECT_EQ(planned.to_host, ring::kVerdictBytes + aligned_frame(length) + 2 * ring::kLengthBytes + 4);
  EXPECT_EQ(bed.counters->device.bytes_to_host.get(), 64 * (planned.to_host + longer));
}

TEST(DeviceExecutor, GivesRoomToFramesThatTheTwinsMakeLonger) {
  const std::vector<std::vector<Position>> chains{
      chain_of({{kFilters, true}, {kTags, true}, {kPads, true}}),                  // punted, within one segment
      chain_of({{kShies, true}, {kTags, true}, {kShies, true}, {kPads, true}}),    // before and after growth
      chain_of({{kRoutes, true}, {kTags, false}, {kPads, false}}),                 // after records
      chain_of({{kScrambles, true}, {kTags, false}, {kPads, false}}),              // after whole frames
      chain_of({{kPads, false}, {kTags, true}, {kPads, true}, {kUntags, false}}),  // in the batch, then on the device
  };
  for (const auto& positions : chains) {
    for (const unsigned fault : {0U, 1U, 2U}) {
      Behaviour behaviour;
      unsigned calls = 0;
      if (fault == 1) behaviour.fails = [&] { return ++calls % 3 == 0; };
      if (fault == 2) behaviour.fails = [&] { return ++calls > 4; };  // lane disabled
      SCOPED_TRACE(positions.front().kind->name + std::string(", fault ") + std::to_string(fault));
      expect_as_on_the_cpu(positions, batches_of(20, 64), behaviour, 3);
    }
  }
  // Frames that grew in scratch memory are sent again, and the device refuses some of the segments.
  for (const unsigned failing : {0U, 2U, 3U, 5U}) {
    Behaviour behaviour;
    unsigned calls = 0;
    if (failing > 0) behaviour.refuses = [&] { return ++calls % failing == 0; };
    const auto positions =
        chain_of({{kShies, true}, {kPads, false}, {kTags, true}, {kShies, true}, {kTags, false}, {kPads, true}});
    expect_as_on_the_cpu(positions, batches_of(20, 64), behaviour, 3, plan::WholeFrames::where_needed,
                         plan::Sharing::none);
    Bed bed(positions);
    ASSERT_NO_FATAL_FAILURE(bed.put_on_lanes(2, behaviour, plan::WholeFrames::where_needed, plan::Sharing::stack));
    EXPECT_EQ(static_cast<DeviceExecutor&>(*bed.executor).memory_sent_again().size(), 2U);
  }
}

TEST(DeviceExecutor, SendsEmittedPacketsInTheirPlace) {
  const std::vector<std::vector<Position>> chains{
      chain_of({{kRoutes, true}, {kCuts, true}}),
      chain_of({{kShies, true}, {kAnswers, true}, {kRoutes, true}, {kPads, true}, {kCuts, true}}),
      chain_of({{kAnswers, false}, {kRoutes, true}, {kAnswers, true}, {kFilters, true}, {kCuts, false}}),
      chain_of({{kScrambles, true}, {kCuts, true}, {kFilters, false}, {kCuts, false}, {kRoutes, false}}),
  };
  for (const auto& positions : chains) {
    for (const unsigned failing : {0U, 3U, 4U}) {
      SCOPED_TRACE(positions.back().kind->name + std::string(", failing ") + std::to_string(failing));
      Behaviour behaviour;
      unsigned calls = 0;
      if (failing > 0) behaviour.fails = [&] { return ++calls % failing == 0; };
      expect_as_on_the_cpu(positions, batches_of(20, 64), behaviour, 3);
    }
  }
  Behaviour behaviour;
  Bed bed(chains[1]);
  ASSERT_NO_FATAL_FAILURE(bed.put_on_lanes(2, behaviour));
  ASSERT_NO_FATAL_FAILURE(bed.run(batches_of(20, 64)));
  EXPECT_GT(bed.counters->generated.packets.get(), 500U);
}

TEST(DeviceExecutor, KeepsReplacedFramesOnTheCpu) {
  const std::vector<std::vector<Position>> chains{
      chain_of({{kJoins, true}}),
      chain_of({{kJoins, true}, {kScrambles, true}, {kTags, true}}),                   // left to the twins of a segment
      chain_of({{kJoins, true}, {kRoutes, false}, {kMarks, true}, {kColours, true}}),  // and of later runs
      chain_of({{kJoins, false}, {kScrambles, true}, {kRoutes, true}}),                // before the device
      chain_of({{kJoins, true}, {kCuts, true}, {kRoutes, false}}),
  };
  for (const auto& positions : chains) {
    for (const unsigned failing : {0U, 3U, 4U}) {
      SCOPED_TRACE(positions.back().kind->name + std::string(", failing ") + std::to_string(failing));
      Behaviour behaviour;
      unsigned calls = 0;
      if (failing > 0) behaviour.fails = [&] { return ++calls % failing == 0; };
      expect_as_on_the_cpu(positions, batches_of(20, 64), behaviour, 3);
      // Between segments, where frames are sent again: those that were replaced are not.
      expect_as_on_the_cpu(
          chain_of({{kShies, true}, {kJoins, false}, {kTags, true}, {kPads, false}, {kJoins, false}, {kFilters, true}}),
          batches_of(20, 64), behaviour, 3, plan::WholeFrames::where_needed, plan::Sharing::none);
    }
  }
  Behaviour behaviour;
  Bed bed(chains[1]);
  ASSERT_NO_FATAL_FAILURE(bed.put_on_lanes(2, behaviour));
  ASSERT_NO_FATAL_FAILURE(bed.run(batches_of(20, 64)));
  const std::uint64_t consumed = bed.counters->functions[0].consumed.packets.get();
  EXPECT_GT(consumed, 100U);
  EXPECT_EQ(bed.counters->functions[0].in.packets.get(), bed.counters->functions[0].forwarded.packets.get() + consumed);
}

TEST(Flight, KeepsAReplacedFrameWhereItIs) {
  alignas(kFrameAlignment) std::array<std::uint8_t, 4096> bytes;
  std::array<PacketDescriptor, 2> descriptors;
  Batch batch(bytes, descriptors, {});
  for (const unsigned number : {1U, 2U}) ASSERT_TRUE(testing::append(batch, numbered(number)));
  LaneState lane;
  Flight flight;
  flight.frames.resize(2);
  flight.scratch = FrameScratch(bytes.size(), descriptors.size(), {});
  flight.emissions = function::Emissions(bytes.size(), descriptors.size());
  flight.emissions.make_room_for_frames(bytes.size(), {});
  flight.emissions.begin(batch);
  StageSet stages;
  flight.begin(batch, &lane, stages);
  PacketView packet = batch.view(1);
  ASSERT_TRUE(flight.emissions.replace_frame(packet, 60'000));
  flight.note_frame(packet);
  EXPECT_EQ(flight.view(0).frame, bytes.data()) << "the others are where they were";
  EXPECT_EQ(flight.view(1).frame, packet.frame);
  EXPECT_EQ(flight.punted, std::vector<std::uint32_t>{1}) << "and it stays on the CPU";
  flight.give_room_to_all();
  EXPECT_NE(flight.view(0).frame, bytes.data());
  EXPECT_EQ(flight.view(1).frame, packet.frame) << "it has room";
}

/// The frames of a batch as the segment of each function gets them, where functions share nothing.
TEST(OwnStacks, TakePacketsThroughTheBufferAndTheStackOfEachFunction) {
  constexpr std::size_t kPackets = 5;
  Bed bed(chain_of({{kFilters, true}, {kMarks, true}, {kScrambles, true}}));
  const auto planned = [&](plan::Sharing sharing) {
    return *plan::plan_device(bed.chain.traits(), bed.chain.processors(), plan::WholeFrames::where_needed, sharing);
  };
  const plan::DevicePlan plan = planned(plan::Sharing::none);
  ASSERT_EQ(plan.segments.size(), 3U);
  OwnStacks stacks(bed.chain, plan, *bed.counters);
  BatchMemory memory({});
  for (std::size_t i = 0; i < kPackets; ++i) ASSERT_TRUE(testing::append(memory.batch, numbered(i)));
  memory.batch.packets()[3].verdict = Verdict::drop(0);
  LaneState lane;
  StageSet stages;
  Flight flight;
  flight.plan = &plan;
  flight.frames.resize(kPackets);
  stacks.make_buffers(flight);
  for (int round = 0; round < 2; ++round) {
    flight.begin(memory.batch, &lane, stages);
    std::vector<std::uint8_t*> before;
    for (std::size_t i = 0; i < kPackets; ++i) before.push_back(memory.batch.view(i).frame);
    for (std::size_t f = 0; f < 3; ++f, ++flight.run) {
      stacks.take_in(flight);
      EXPECT_EQ(stacks.tracker(f)->counters().packets, (kPackets - 1) * (static_cast<std::size_t>(round) + 1));
      for (const std::size_t i : {0U, 1U, 2U, 4U}) {
        const PacketView packet = flight.view(i);
        EXPECT_EQ(packet.frame == before[i], f == 0) << "only the filter's segment sends headers";
        EXPECT_TRUE(std::ranges::equal(std::span(packet.frame, packet.length()),
                                       std::span(memory.batch.view(i).frame, packet.length())));
        before[i] = packet.frame;
      }
    }
  }
  const plan::DevicePlan shared = planned(plan::Sharing::stack);
  Flight other;
  OwnStacks(bed.chain, shared, *bed.counters).make_buffers(other);
  EXPECT_TRUE(other.own_buffers.empty());
  stacks.end();
}

TEST(DeviceExecutor, GivesRoomToFramesThatAreTraced) {
  const auto positions = chain_of({{kRoutes, true}, {kTags, true}, {kPads, false}, {kCuts, false}});
  Bed cpu(positions);
  cpu.executor = std::make_unique<CpuExecutor>(cpu.chain, 0, *cpu.counters, nullptr);
  cpu.executor->begin();
  ASSERT_NO_FATAL_FAILURE(cpu.run(batches_of(4, 60)));
  Behaviour behaviour;
  Bed device(positions);
  Taps taps;
  std::uint64_t traced = 0;
  std::uint64_t missed = 0;
  ASSERT_TRUE(
      taps.trace.begin({90, {}, [&](const TracedPacket&) { ++traced; }, [&](std::uint64_t n) { missed += n; }}));
  ASSERT_NO_FATAL_FAILURE(
      device.put_on_lanes(2, behaviour, plan::WholeFrames::where_needed, plan::Sharing::packets, &taps));
  ASSERT_NO_FATAL_FAILURE(device.run(batches_of(4, 60)));
  ASSERT_NO_FATAL_FAILURE(expect_equal(device, cpu));
  EXPECT_FALSE(taps.trace.wants_more());
  EXPECT_EQ(traced, 90U);
  EXPECT_EQ(missed, 2 * (60 - ring::kMostPictured)) << "of the first two batches; the third one has the last 26";
}

/// The steps of all packets of a run, for comparison; without the processor.
std::vector<std::string> text_of(const std::vector<TracedPacket>& packets) {
  std::vector<std::string> texts(packets.size());
  for (const TracedPacket& packet : packets) {
    std::string& text = texts[packet.number - 1];
    text = packet.packet + '\n';
    for (const TracedPacket::Step& step : packet.steps) {
      text += step.function + step.arm + to_string(step.read) + "; " + to_string(step.changed) + "; " +
              to_string(step.decision) + '\n';
    }
    if (packet.outcome) text += to_string(*packet.outcome);
  }
  return texts;
}

TEST(DeviceExecutor, TracesTheSamePathsAsTheCpu) {
  const std::vector<std::vector<Position>> chains{
      chain_of({{kFilters, true}, {kRoutes, true}}),
      chain_of({{kRoutes, true}, {kFilters, false}, {kTags, true}, {kRoutes, true}}),
      chain_of({{kRoutes, true}, {kMeters, true}, {kScrambles, true}}),
  };
  for (const std::vector<Position>& positions : chains) {
    std::vector<std::vector<TracedPacket>> traces(2);
    for (const bool on_device : {false, true}) {
      Behaviour behaviour;
      Bed bed(positions);
      Taps taps;
      std::vector<TracedPacket>& trace = traces[on_device ? 1 : 0];
      ASSERT_TRUE(taps.trace.begin({100, {}, [&](const TracedPacket& packet) { trace.push_back(packet); }}));
      if (on_device) {
        bed.put_on_lanes(2, behaviour, plan::WholeFrames::where_needed, plan::Sharing::packets, &taps);
      } else {
        bed.executor = std::make_unique<CpuExecutor>(bed.chain, 0, *bed.counters, &taps);
        bed.executor->begin();
      }
      ASSERT_NO_FATAL_FAILURE(bed.run(batches_of(4, 30)));
      ASSERT_EQ(trace.size(), 100U);
      for (const TracedPacket& packet : trace) {
        if (!packet.packet.starts_with("IPv4")) continue;  // its headers may be too long for the device
        for (std::size_t i = 0; i < packet.steps.size(); ++i)
          EXPECT_EQ(packet.steps[i].processor == kDevice, on_device && positions[i].on_gpu);
      }
    }
    EXPECT_EQ(text_of(traces[1]), text_of(traces[0]));
  }
}

TEST(DeviceExecutor, CapturesDroppedFramesAsTheyCameIntoTheFunction) {
  // The router before it has changed them, so the host's copies are out of date.
  const auto positions = chain_of({{kRoutes, true}, {kFilters, true}});
  std::vector<std::vector<Bytes>> captures(2);
  for (const bool on_device : {false, true}) {
    Behaviour behaviour;
    Bed bed(positions);
    Taps taps;
    std::vector<Bytes>& capture = captures[on_device ? 1 : 0];
    const auto take = [&](const DroppedFrame& dropped) {
      EXPECT_EQ(kReasons[dropped.reason], "unwanted");
      capture.emplace_back(dropped.packet.frame, dropped.packet.frame + dropped.packet.length());
    };
    ASSERT_TRUE(taps.capture.begin(1, 1, {1000, {}, take}));
    if (on_device) {
      bed.put_on_lanes(2, behaviour, plan::WholeFrames::where_needed, plan::Sharing::packets, &taps);
    } else {
      bed.executor = std::make_unique<CpuExecutor>(bed.chain, 0, *bed.counters, &taps);
      bed.executor->begin();
    }
    ASSERT_NO_FATAL_FAILURE(bed.run(batches_of(4, 60)));
  }
  EXPECT_GT(captures[0].size(), 10U);
  // Packets that the device has left to the CPU are dropped before others of their batch.
  for (std::vector<Bytes>& capture : captures) std::ranges::sort(capture);
  EXPECT_TRUE(captures[1] == captures[0]) << captures[1].size() << " and " << captures[0].size();
}

TEST(FrameScratch, HasRoomForAFullBatchThatHasGrownOnTheDevice) {
  constexpr FrameRoom kGrowth{5, 9};
  FrameScratch scratch(64 * 32, 64, kGrowth);
  for (int round = 0; round < 2; ++round) {
    std::vector<std::uint8_t*> frames;
    for (std::size_t i = 0; i < 64; ++i) {
      Bytes bytes(32 + 5 + 9, static_cast<std::uint8_t>(i));  // the most that it may have grown to
      std::uint8_t* const frame = scratch.with_room(i, bytes.data(), static_cast<std::uint32_t>(bytes.size()));
      std::memset(frame - kGrowth.head, static_cast<int>(i), bytes.size() + kGrowth.head + kGrowth.tail);
      EXPECT_EQ(scratch.with_room(i, frame - 3, 50), frame - 3) << "it has room already";
      EXPECT_GE(frame - kGrowth.head, scratch.memory().data());
      EXPECT_LE(frame + bytes.size() + kGrowth.tail, scratch.memory().data() + scratch.memory().size());
      frames.push_back(frame);
    }
    for (std::size_t i = 0; i < 64; ++i) {
      for (std::ptrdiff_t b = -5; b < 32 + 5 + 9 + 9; ++b) ASSERT_EQ(frames[i][b], i);
    }
    Bytes again(20);
    EXPECT_EQ(scratch.with_room(7, again.data(), 20), frames[7]) << "back from the device once more";
    scratch.reset();
  }
}

TEST(DeviceExecutorDeathTest, StopsAtAFinishStageThatDoesMoreThanDrop) {
  Behaviour behaviour;
  Bed bed(chain_of({{kMeters, true}}));
  ASSERT_NO_FATAL_FAILURE(bed.put_on_lanes(1, behaviour));
  static_cast<CountingFunction&>(*bed.chain.functions[0].function).consumes = true;
  EXPECT_DEATH(bed.run(batches_of(1, 5)), "meter: its finish stage does more than drop \\(packet 0 of worker 0");
}

/// How many of two packets had been sent when the finish stage of the chain's first function saw the first one. The
/// second is of flow `flow`.
std::size_t sent_before_finish(const std::vector<Position>& positions, unsigned flow = 2, bool defers = true) {
  Bed bed(positions);
  bed.chain.settings.defers_finish = defers;
  Behaviour behaviour;
  bed.put_on_lanes(1, behaviour);
  const auto sent = [&bed] {
    std::size_t count = 0;
    for (const auto& port : bed.chain.ports) count += static_cast<testing::FakePort&>(*port.port).sent[0].size();
    return count;
  };
  std::optional<std::size_t> before;
  static_cast<CountingFunction&>(*bed.chain.functions[0].function).while_finishing = [&] {
    if (!before) before = sent();
  };
  bed.run({{numbered(8, 2), numbered(8, flow)}});
  return before.value_or(~std::size_t{0});
}

TEST(DeviceExecutor, SendsPacketsBeforeFinishStagesThatWait) {
  EXPECT_EQ(sent_before_finish(chain_of({{kWatches, true}})), 2U);
  EXPECT_EQ(sent_before_finish(chain_of({{kWatches, true}, {kRoutes, true}})), 2U) << "records come back";
  EXPECT_EQ(sent_before_finish(chain_of({{kWatches, true}, {kPads, true}})), 2U) << "frames come back";
  EXPECT_EQ(sent_before_finish(chain_of({{kWatches, true}, {kScrambles, false}})), 0U) << "the host changes them";
  EXPECT_EQ(sent_before_finish(chain_of({{kWatches, true}, {kShies, true}}), 1), 0U) << "the twin's turn";
  EXPECT_EQ(sent_before_finish(chain_of({{kMeters, true}})), 0U) << "it drops";
  EXPECT_EQ(sent_before_finish(chain_of({{kWatches, true}}), 2, false), 0U) << "they are not to wait";
}

TEST(DeviceExecutor, ShowsFinishStagesThatWaitWhatTheTwinsSee) {
  const std::vector<std::vector<Position>> chains{
      chain_of({{kFilters, true}, {kWatches, true}, {kRoutes, true}}),
      chain_of({{kRoutes, true}, {kWatches, true}, {kRoutes, true}, {kColours, true}}),
      chain_of({{kPads, false}, {kWatches, true}, {kScrambles, true}, {kTags, true}}),
      chain_of({{kWatches, true}, {kMeters, true}, {kWatches, true}, {kMarks, true}, {kCuts, true}}),
      chain_of({{kShies, true}, {kWatches, true}, {kRoutes, true}}),
      chain_of({{kFilters, true}, {kGlances, true}, {kWatches, true}, {kRoutes, true}, {kColours, true}}),
      chain_of({{kGlances, true}, {kMarks, true}, {kPads, true}}),
  };
  // Nothing is punted in every other batch. Its waiting finish stages must run before the twins get packets of the next
  // batch.
  std::vector<std::vector<Bytes>> batches = batches_of(20, 64);
  for (std::size_t b = 0; b < batches.size(); b += 2) batches[b].assign(64, numbered(b, 2));
  for (const auto& positions : chains) {
    for (const unsigned failing : {0U, 3U}) {
      Behaviour behaviour;
      behaviour.polls_until_done = [] { return 0U; };
      unsigned calls = 0;
      if (failing > 0) behaviour.fails = [&] { return ++calls % failing == 0; };
      SCOPED_TRACE(positions.front().kind->name + std::string(", failing ") + std::to_string(failing));
      expect_as_on_the_cpu(positions, batches, behaviour, 3);
    }
  }
}

TEST(DeviceExecutor, SettlesBurstsInWhichOnePacketEndsOrIsLeftToTheTwins) {
  const std::vector<std::vector<Position>> chains{
      chain_of({{kFilters, true}, {kGlances, true}, {kRoutes, true}, {kPads, true}}),    // frames come back
      chain_of({{kFilters, true}, {kGlances, true}, {kMeters, true}, {kRoutes, true}}),  // records come back
      chain_of({{kGlances, true}, {kShies, true}, {kPads, true}, {kFilters, true}, {kMeters, true}}),
      chain_of({{kShies, true}, {kFilters, true}, {kMarks, false}, {kPads, true}, {kTags, true}}),
  };
  // Three unusual packets: one is filtered, one is punted to a twin, one is dropped by the padding function. All others
  // pass.
  const std::array odd{numbered(7, 9), numbered(7, 1), numbered(4, 2)};
  for (const auto& positions : chains) {
    SCOPED_TRACE(positions.back().kind->name);
    std::vector<std::vector<Bytes>> batches{std::vector<Bytes>(kMostPackets, numbered(8, 2))};
    for (const std::size_t at :
         {std::size_t{0}, function::kBurst - 1, function::kBurst, function::kBurst + 70, kMostPackets - 1}) {
      for (const Bytes& frame : odd) {
        batches.emplace_back();
        for (std::size_t i = 0; i < kMostPackets; ++i) batches.back().push_back(i == at ? frame : numbered(8 + i, 2));
        for (Bytes& other : batches.back()) {
          if (number_of(other) % 11 == 4) other = numbered(8, 2);  // the padding function drops some of these
        }
        batches.back()[at] = frame;
      }
    }
    Behaviour behaviour;
    expect_as_on_the_cpu(positions, batches, behaviour, 2);
    expect_as_on_the_cpu(positions, batches_of(4, kMostPackets), behaviour, 2);
  }
}

TEST(DeviceExecutor, ShowsFinishStagesThatWaitOnlyWhatTheyChoose) {
  Behaviour behaviour;
  for (const auto& positions : {chain_of({{kGlances, true}, {kRoutes, true}}),  // records come back
                                chain_of({{kGlances, true}, {kPads, true}})}) {
    Bed bed(positions);
    ASSERT_NO_FATAL_FAILURE(bed.put_on_lanes(2, behaviour));
    std::vector<Bytes> frames;
    for (unsigned i = 0; i < kMostPackets; ++i) frames.push_back(numbered(8, i % 30));  // a third of them has a port 3n
    ASSERT_NO_FATAL_FAILURE(bed.run({frames, std::vector<Bytes>(kMostPackets, numbered(8, 0))}));
    const auto& glances = static_cast<CountingFunction&>(*bed.chain.functions[0].function);
    EXPECT_EQ(glances.finished, kMostPackets / 3);
    EXPECT_EQ(glances.state().passed, (kMostPackets * 2 - glances.finished) * frames[0].size());
  }
}

constexpr std::array kAllSharing{plan::Sharing::packets, plan::Sharing::parsing, plan::Sharing::stack,
                                 plan::Sharing::none};

/// A fork over two functions, each in its own arm, by input port.
std::vector<plan::Fork> fork_by_port(std::size_t first) {
  return {{first, first + 2, {{first, first + 1, {{{0}, {}}}, ""}, {first + 1, first + 2, {{{1}, {}}}, ""}}}};
}

/// The device drops only packets whose headers it has seen completely, also while they wait for another arm:
///
///     ┬ filter ─┬ ─▶
///     ├ filter ─┤
TEST(DeviceExecutor, LeavesLongHeadersOfOtherArmsToTheTwins) {
  const std::vector<Position> positions = chain_of({{kFilters, true}, {kFilters, true}});
  Behaviour behaviour;
  for (const plan::Sharing sharing : kAllSharing) {
    expect_as_on_the_cpu(positions, batches_of(4, 200), behaviour, 2, plan::WholeFrames::where_needed, sharing,
                         fork_by_port(0));
  }
}

///     ┬ pad ─┬ ─▶ colour
///     ├ tag ─┤
TEST(DeviceExecutor, KeepsFramesOfOtherArmsWhereTheyAre) {
  Behaviour behaviour;
  for (const bool second_on_gpu : {false, true}) {
    expect_as_on_the_cpu(chain_of({{kPads, true}, {kTags, second_on_gpu}, {kScrambles, false}}), batches_of(4, 200),
                         behaviour, 2, plan::WholeFrames::where_needed, plan::Sharing::packets, fork_by_port(0));
  }
}

/// Frames come back whole at the end, including what a CPU function in one arm changed:
///
///     filter ─▶ ┬ route (CPU) ─┬ ─▶ filter
///               ├ filter ──────┤
TEST(DeviceExecutor, SendsTheHostsChangesOfOneArmToTheDevice) {
  Behaviour behaviour;
  expect_as_on_the_cpu(chain_of({{kFilters, true}, {kRoutes, false}, {kFilters, true}, {kFilters, true}}),
                       batches_of(4, 200), behaviour, 2, plan::WholeFrames::always, plan::Sharing::packets,
                       fork_by_port(1));
}

/// Frames of both arms are sent again, from where their arms have left them, and in the order of the packets:
///
///     filter ─▶ ┬ tag ─▶ pad (CPU) ─▶ untag ─▶ scramble (CPU) ─▶ mark ─┬ ─▶ scramble (CPU) ─▶ mark
///               ├ mark ─▶ tag (CPU) ─▶ pad ────────────────────────────┤
TEST(DeviceExecutor, SendsFramesAgainInAndAfterTheArmsOfAFork) {
  const std::vector<Position> positions = chain_of({{kFilters, true},
                                                    {kTags, true},
                                                    {kPads, false},
                                                    {kUntags, true},
                                                    {kScrambles, false},
                                                    {kMarks, true},
                                                    {kMarks, true},
                                                    {kTags, false},
                                                    {kPads, true},
                                                    {kScrambles, false},
                                                    {kMarks, true}});
  for (const bool exhaustive : {false, true}) {
    std::vector<plan::ArmCondition> second{{{1}, {}}};
    if (exhaustive) second.clear();
    const std::vector<plan::Fork> forks{{1, 9, {{1, 6, {{{0}, {}}}, ""}, {6, 9, second, ""}}}};
    for (const unsigned failing : {0U, 3U, 7U}) {
      for (const plan::Sharing sharing : kAllSharing) {
        Behaviour behaviour;
        unsigned calls = 0;
        if (failing > 0) behaviour.fails = [&] { return ++calls % failing == 0; };
        expect_as_on_the_cpu(positions, batches_of(6, 200), behaviour, 2, plan::WholeFrames::where_needed, sharing,
                             forks);
      }
    }
    Behaviour behaviour;
    Bed bed(positions, forks);
    ASSERT_NO_FATAL_FAILURE(bed.put_on_lanes(2, behaviour));
    EXPECT_EQ(static_cast<DeviceExecutor&>(*bed.executor).memory_sent_again().size(), 2U);
    ASSERT_NO_FATAL_FAILURE(bed.run(batches_of(4, 64)));
    EXPECT_EQ(bed.counters->device.segments.get(), 4 * bed.plan.segments.size()) << "none is left to the CPU";
    EXPECT_EQ(behaviour.scattered, 0U);
  }
}

/*  in_port 0 ─ join (CPU) ─┐
    in_port 1 ─ scramble ───┤
                            └─ pad   a batch with a replaced frame stays on the CPU: the segment of one arm, which is
   the first to send, would leave the other arm's packets behind  */
TEST(DeviceExecutor, KeepsBatchesWithReplacedFramesOnTheCpuBeforeAFork) {
  for (const auto whole : {plan::WholeFrames::always, plan::WholeFrames::where_needed}) {
    Behaviour behaviour;
    expect_as_on_the_cpu(chain_of({{kJoins, false}, {kScrambles, true}, {kPads, true}}), batches_of(20, 64), behaviour,
                         2, whole, plan::Sharing::packets, fork_by_port(0));
  }
}

/// By the port that a packet came by, or by the one that was chosen for it.
std::vector<plan::ArmCondition> random_conditions() {
  plan::ArmCondition condition;
  const auto port = static_cast<PortIndex>(*rc::gen::inRange(0, 2));
  switch (*rc::gen::inRange(0, 3)) {
    case 0: condition.in_ports = {port}; break;
    case 1: condition.out_ports = {port}; break;
    default: return {};  // all packets
  }
  return {condition};
}

/// Appends functions that all packets pass, or a fork.
void add_random_part(std::vector<Position>& positions, std::vector<plan::Fork>& forks) {
  const auto add_functions = [&](int most) {
    for (int n = *rc::gen::inRange(0, most + 1); n > 0; --n)
      positions.push_back(
          {&kKinds[*rc::gen::inRange(0, kKindCount)], *rc::gen::inRange(0, 4) > 0, *rc::gen::inRange(0, 4) == 0});
  };
  if (*rc::gen::inRange(0, 3) > 0) return add_functions(2);
  plan::Fork fork{positions.size(), 0, {}};
  for (int arms = *rc::gen::inRange(1, 4); arms > 0; --arms) {
    plan::Arm arm{positions.size(), 0, random_conditions(), ""};
    add_functions(3);
    arm.last = positions.size();
    fork.arms.push_back(std::move(arm));
  }
  fork.last = positions.size();
  if (fork.last > fork.first) forks.push_back(std::move(fork));
}

RC_GTEST_PROP(DeviceExecutor, DoesWhatTheCpuDoesInAnyChainOverAnyDevice, ()) {
  std::vector<Position> positions{{&kKinds[*rc::gen::inRange(0, kKindCount)], true}};
  std::vector<plan::Fork> forks;
  for (int parts = *rc::gen::inRange(0, 4); parts > 0; --parts) add_random_part(positions, forks);
  if (*rc::gen::arbitrary<bool>() && (forks.empty() || forks[0].first > 0)) {  // begins with another function or a fork
    positions.erase(positions.begin());
    for (plan::Fork& fork : forks) {
      --fork.first, --fork.last;
      for (plan::Arm& arm : fork.arms) --arm.first, --arm.last;
    }
    RC_PRE(!positions.empty());
  }
  const auto sharing = *rc::gen::elementOf(kAllSharing);
  std::vector<std::vector<Bytes>> batches;
  std::uint64_t number = 0;
  for (int n = *rc::gen::inRange(1, 12); n > 0; --n) {
    batches.emplace_back();
    const int most = *rc::gen::inRange(0, 8) == 0 ? static_cast<int>(kMostPackets) : 64;
    for (int size = *rc::gen::inRange(1, most); size > 0; --size) batches.back().push_back(frame(number++));
  }
  const auto faults = *rc::gen::inRange(0, 3);
  unsigned random = *rc::gen::arbitrary<unsigned>();
  const auto next = [&random] { return random = random * 1664525U + 1013904223U, random >> 16; };
  Behaviour behaviour;
  behaviour.polls_until_done = [&] { return next() % 6; };
  if (faults == 1) behaviour.fails = [&] { return next() % 4 == 0; };
  if (faults == 2) behaviour.refuses = [&] { return next() % 4 == 0; };
  const auto lanes = static_cast<std::size_t>(*rc::gen::inRange(1, 6));
  const auto whole = *rc::gen::arbitrary<bool>() ? plan::WholeFrames::always : plan::WholeFrames::where_needed;
  std::string text;
  for (const Position& p : positions)
    text += std::string(p.kind->name) + (!p.on_gpu ? "@cpu " : p.placed_on_cpu ? "@cpu! " : "@gpu ");
  for (const plan::Fork& fork : forks) {
    text += fmt::format("fork [{}, {}): ", fork.first, fork.last);
    for (const plan::Arm& arm : fork.arms) text += fmt::format("[{}, {}) ", arm.first, arm.last);
  }
  // Each function decides in another way in each epoch, and what it counts depends on the order of all packets. So a
  // packet that two epochs decide on, or that is lost or doubled, shows.
  std::vector<std::size_t> reloads;
  for (std::size_t b = 0; b < batches.size(); ++b) {
    if (*rc::gen::inRange(0, 3) == 0) reloads.push_back(b);
  }
  const auto epochs_on_device = *rc::gen::arbitrary<bool>() ? SIZE_MAX : *rc::gen::inRange<std::size_t>(0, 4);
  const auto lent_of_three = static_cast<std::size_t>(*rc::gen::inRange(0, 4));
  SCOPED_TRACE(fmt::format("{}{} batches, faults {}, epochs begin at {}, {} of them on the device, lent {} of 3", text,
                           batches.size(), faults, fmt::join(reloads, " "), epochs_on_device, lent_of_three));
  expect_as_on_the_cpu(
      positions, batches, behaviour, lanes, whole, sharing, forks, reloads,
      [=](std::size_t packet) { return packet * 2654435761U % 97 % 3 < lent_of_three; }, epochs_on_device);
  RC_ASSERT(!::testing::Test::HasFailure());
}

}  // namespace
}  // namespace penstock::run
