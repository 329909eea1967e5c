// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Compares batches that pass a lane with the same processing of each packet on the host: verdicts, findings, records,
// frames and bytes transferred, for every kind of transfer.

#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gpu/collecting.h"
#include "gpu/memory.h"
#include "gpu/per_packet.cuh"
#include "packet/flow_hash.h"
#include "packet/parse_core.h"
#include "packet/testing/random_frames.h"
#include "port/capture_reader.h"
#include "ring/lane.h"
#include "ring/lane_memory.h"
#include "ring/lent_runs.h"

namespace penstock::ring {
namespace {

using testing::Bytes;
using testing::Frame;
using testing::RandomFrames;

/// Reports what it finds in a packet, drops some packets, and changes the others like a router.
struct ProbeCore {
  struct Finding {
    PacketLayout layout;
    std::uint32_t flow_hash;
  };
  PENSTOCK_HOST_DEVICE Verdict operator()(PacketView packet, Finding& finding) const noexcept {
    finding.layout = packet.layout();
    finding.flow_hash = packet.packet->flow_hash;
    if (packet.packet->flow_hash % 4 == 1) return Verdict::drop(packet.packet->flow_hash / 4 % 3);
    if (packet.packet->link_type == LinkType::ethernet && packet.layout().network_offset >= 14) {
      packet.ethernet().destination.bytes[5] ^= 0xff;
      packet.ethernet().source.bytes[0] ^= 0x0f;
    }
    if (packet.layout().has(PacketLayout::kNetworkHeader)) {
      if (packet.layout().network == NetworkLayer::ipv4) packet.ipv4().ttl -= 1;
      if (packet.layout().network == NetworkLayer::ipv6) packet.ipv6().hop_limit -= 1;
    }
    return Verdict::forward(static_cast<PortIndex>(packet.packet->flow_hash % 7));
  }
};
constexpr FieldSet kWrites{Field::eth_dst, Field::eth_src, Field::ipv4_ttl, Field::ipv6_hop_limit};

/// Only reports what it finds.
struct LookCore {
  using Finding = ProbeCore::Finding;
  PENSTOCK_HOST_DEVICE Verdict operator()(PacketView packet, Finding& finding) const noexcept {
    finding.layout = packet.layout();
    finding.flow_hash = packet.packet->flow_hash;
    return packet.packet->verdict;
  }
};

/// Adds `head` bytes before each frame and `tail` bytes after it, like a tunnel.
struct GrowCore {
  std::uint32_t head, tail;
  PENSTOCK_HOST_DEVICE Verdict operator()(PacketView packet) const noexcept {
    packet.packet->offset -= head;
    std::uint8_t* const first = packet.frame - head;
    packet.packet->length += head + tail;
    packet.packet->wire_length += head + tail;
    for (std::uint32_t i = 0; i < head; ++i) first[i] = static_cast<std::uint8_t>(i);
    for (std::uint32_t i = 0; i < tail; ++i) first[packet.packet->length - tail + i] = 0xee;
    return packet.packet->verdict;
  }
};

constexpr std::size_t kBatchBytes = std::size_t{4} << 20;
constexpr std::size_t kBatchPackets = 4096;

struct Way {
  const char* name;
  Crossing crossing;
  bool frames_up;
  bool frames_down;
  FrameRoom room{};
  std::uint32_t head = 0;  // added by a second stage
  std::uint32_t tail = 0;
  enum class Lent : std::uint8_t {
    none,
    some,   // two of three, at any alignment
    close,  // all, with small gaps
    slots,  // all, at 66 bytes from each multiple of kSlot
  };
  Lent lent = Lent::none;
  bool given = false;  // the lane is given the memory of its results
  static constexpr std::uint32_t kSlot = 2048;
};
using Lent = Way::Lent;
constexpr Way kWays[] = {
    {"frames there and back", Crossing::copy, true, true},
    {"frames there, records back", Crossing::copy, true, false},
    {"headers there, records back", Crossing::copy, false, false},
    {"zero copy: frames there and back", Crossing::zero_copy, true, true},
    {"zero copy: frames there, records back", Crossing::zero_copy, true, false},
    {"zero copy: headers there, records back", Crossing::zero_copy, false, false},
    {"room", Crossing::copy, true, true, {20, 10}},
    {"growth by 16 and 8", Crossing::copy, true, true, {16, 8}, 16, 8},
    {"growth by 20 and 0", Crossing::copy, true, true, {20, 0}, 20, 0},
    {"zero copy: growth by 13 and 7", Crossing::zero_copy, true, true, {13, 7}, 13, 7},
    {"lent: frames there and back", Crossing::copy, true, true, {}, 0, 0, Lent::some},
    {"lent: frames there, records back", Crossing::by_size, true, false, {}, 0, 0, Lent::some},
    {"lent: headers there, records back", Crossing::copy, false, false, {}, 0, 0, Lent::some},
    {"lent: headers there, records back by kernels", Crossing::zero_copy, false, false, {}, 0, 0, Lent::some},
    {"lent: growth by 13 and 7", Crossing::zero_copy, true, true, {13, 7}, 13, 7, Lent::some},
    {"close: frames there and back", Crossing::copy, true, true, {}, 0, 0, Lent::close},
    {"close: growth by 20 and 0", Crossing::by_size, true, true, {20, 0}, 20, 0, Lent::close},
    {"slots: frames there and back", Crossing::copy, true, true, {}, 0, 0, Lent::slots},
    {"slots: headers there, records back", Crossing::by_size, false, false, {}, 0, 0, Lent::slots},
    {"given: frames there and back", Crossing::copy, true, true, {}, 0, 0, Lent::none, true},
    {"given: headers there, records back", Crossing::by_size, false, false, {}, 0, 0, Lent::none, true},
    {"given, zero copy: growth by 13 and 7", Crossing::zero_copy, true, true, {13, 7}, 13, 7, Lent::none, true},
};

/// A host batch with pinned frames, and the lane that it passes.
class Twins {
 public:
  explicit Twins(const Way& way) : way_(way) {
    LaneShape shape{kBatchBytes, kBatchPackets, way.room, true, way.crossing, {}};
    SegmentShape segment;
    segment.frames_up = way.frames_up;
    segment.frames_down = way.frames_down;
    if (!way.frames_down) segment.down = *record_layout(kWrites);
    LaneStages stages(1);
    segment.stages.push_back({3, sizeof(ProbeCore::Finding)});
    stages[0].push_back(std::make_unique<gpu::PerPacketStage<ProbeCore>>(ProbeCore{}));
    if (way.head + way.tail > 0) {
      segment.stages.push_back({4, 0, true});
      stages[0].push_back(std::make_unique<gpu::PerPacketStage<GrowCore>>(GrowCore{way.head, way.tail}));
    }
    shape.segments.push_back(segment);
    record_ = segment.down;
    if (!way.given) {
      lane_ = make_device_lane(shape, std::move(stages));
      return;
    }
    const LaneSizes sizes(shape);
    results_ = gpu::PinnedBuffer<std::uint8_t>(sizes.results);
    packed_ = gpu::PinnedBuffer<std::uint8_t>(sizes.packed);
    const LaneMemory memory{results_.span(), packed_.span(), {}};
    lane_ = make_device_lane(shape, std::move(stages), nullptr, &memory);
  }

  Batch& host() { return host_; }
  Lane& lane() { return *lane_; }
  bool append(const Frame& frame) {
    if (way_.lent != Lent::none && (way_.lent != Lent::some || host_.size() % 3 != 1)) return lend(frame);
    return host_.append(frame.bytes, {.wire_length = frame.wire_length, .link_type = frame.link_type});
  }
  void start() { ASSERT_TRUE(lane_->start(host_, 0, {})); }

  /// Polls like a worker, and compares all packets. Adds the number of packets with a transport header to `whole`.
  void expect_what_the_host_does(std::size_t* whole = nullptr) {
    gpu::Progress progress;
    while ((progress = lane_->progress()) == gpu::Progress::kRunning) continue;
    ASSERT_EQ(progress, gpu::Progress::kDone);
    const SegmentResults& results = lane_->results();
    ASSERT_EQ(results.verdicts.size(), host_.size());
    const auto* findings = reinterpret_cast<const ProbeCore::Finding*>(results.findings[0]);
    const std::uint8_t* records = results.records;
    const std::uint8_t* frames = results.frames;
    Lane::Crossed expected;
    std::size_t sent = 0;
    std::size_t frame_bytes = 0;
    for (std::size_t i = 0; i < host_.size(); ++i) {
      SCOPED_TRACE(i);
      PacketDescriptor original = host_.packets()[i];
      Bytes bytes(original.length + 16);
      std::memcpy(bytes.data(), host_.view(i).frame, original.length);
      const PacketView packet{bytes.data(), &original};
      parse(packet);
      original.flow_hash = flow_hash(packet);
      if (whole != nullptr) *whole += packet.layout().has(PacketLayout::kTransportHeader) ? 1 : 0;
      ++packets_;
      frame_bytes += aligned_frame(original.length);
      sent += way_.frames_up ? aligned_frame(original.length) : aligned_frame(std::min(original.length, kHeaderBytes));
      if (results.verdicts[i].kind == VerdictKind::punt) {
        ++punted_;
        ASSERT_FALSE(way_.frames_up);
        ASSERT_GT(std::max<std::uint32_t>(original.layout.network_offset + 40U, original.layout.transport_offset + 20U),
                  kHeaderBytes);
        continue;
      }
      ProbeCore::Finding found;
      Verdict verdict = ProbeCore{}(packet, found);
      ASSERT_EQ(std::memcmp(&findings[i].layout, &found.layout, sizeof found.layout), 0);
      ASSERT_EQ(findings[i].flow_hash, found.flow_hash);
      verdict.nf = 3;
      if (verdict.alive() && way_.head + way_.tail > 0) verdict.nf = 4;
      ASSERT_EQ(results.verdicts[i], verdict);
      if (!verdict.alive()) continue;
      if (way_.frames_down) {
        const std::uint32_t length = original.length + way_.head + way_.tail;
        if (way_.head + way_.tail > 0) {
          ASSERT_EQ(results.lengths[0], nullptr);
          ASSERT_EQ(results.lengths[1][i], length);
        }
        Bytes grown;
        for (std::uint32_t b = 0; b < way_.head; ++b) grown.push_back(static_cast<std::uint8_t>(b));
        grown.insert(grown.end(), bytes.begin(), bytes.begin() + original.length);
        grown.insert(grown.end(), way_.tail, 0xee);
        ASSERT_EQ(std::memcmp(frames, grown.data(), length), 0);
        frames += aligned_frame(length);
        expected.to_host += aligned_frame(length);
      } else {
        PacketDescriptor unparsed = host_.packets()[i];
        Bytes merged(original.length + 16);
        std::memcpy(merged.data(), host_.view(i).frame, original.length);
        take_layout(records, {merged.data(), &unparsed});
        scatter(record_, records, {merged.data(), &unparsed});
        ASSERT_EQ(merged, bytes);
        records += record_.bytes;
        expected.to_host += record_.bytes;
      }
    }
    const bool whole_frames = way_.frames_up || sent >= frame_bytes;
    const std::size_t n = host_.size();
    const auto padded = [](std::size_t size) { return (size + 7) / 8 * 8; };
    std::size_t in_runs = 0;
    if (whole_frames && host_.lent() == n && way_.crossing != Crossing::zero_copy &&
        host_.used_bytes() >= kCollectBytes) {
      LentRuns runs(kBatchBytes);
      runs.begin();
      for (const PacketDescriptor& packet : host_.packets()) runs.add(packet.region, packet.offset, packet.length);
      for (const LentRun& run : runs.end()) in_runs += run.bytes();
    }
    copied_in_runs_ += in_runs > 0 ? 1 : 0;
    expected.to_device = n * kIndexBytes + (in_runs > 0 ? in_runs : whole_frames ? frame_bytes : sent);
    if (in_runs == 0 && whole_frames && host_.lent() > 0)
      expected.to_device += n * sizeof(std::uint32_t);  // their places
    expected.to_host += padded(n * kVerdictBytes) + padded(n * sizeof(ProbeCore::Finding));
    if (way_.head + way_.tail > 0) expected.to_host += padded(n * kLengthBytes);
    ASSERT_EQ(lane_->crossed().to_device, expected.to_device);
    ASSERT_EQ(lane_->crossed().to_host, expected.to_host);
  }

  void reset() {
    host_.reset(0);
    lent_used_ = 0;
  }

  [[nodiscard]] std::size_t packets() const { return packets_; }
  [[nodiscard]] std::size_t punted() const { return punted_; }
  /// Batches that copy engines brought from where their frames were lent.
  [[nodiscard]] std::size_t copied_in_runs() const { return copied_in_runs_; }

 private:
  /// The first frame begins at the region's first byte, and the last one may end at its last byte.
  bool lend(const Frame& frame) {
    const std::size_t length = frame.bytes.size();
    if (way_.lent == Lent::slots) lent_used_ = (lent_used_ + Way::kSlot - 1) / Way::kSlot * Way::kSlot + 66;
    if (lent_bytes_.size() < lent_used_ + length) return false;
    const std::size_t left = lent_bytes_.size() - lent_used_;
    const auto at = static_cast<std::uint32_t>(lent_used_);
    if (!host_.lend(region_, at, length, {.wire_length = frame.wire_length, .link_type = frame.link_type}))
      return false;
    if (length > 0) std::memcpy(lent_bytes_.data() + at, frame.bytes.data(), length);
    lent_used_ += length + std::min<std::size_t>(left - length, at % 29);
    return true;
  }

  Way way_;
  RecordLayout record_;
  gpu::PinnedBuffer<std::uint8_t> bytes_{kBatchBytes};
  gpu::PinnedBuffer<std::uint8_t> lent_bytes_{2 * kBatchPackets * Way::kSlot};
  std::size_t lent_used_ = 0;
  PacketMemory memory_;
  PacketMemory::Region region_ = memory_.add(lent_bytes_.span()).value();
  std::vector<PacketDescriptor> descriptors_{kBatchPackets};
  Batch host_{bytes_.span(), descriptors_, {}, &memory_};
  gpu::PinnedBuffer<std::uint8_t> results_, packed_;  // if given
  std::unique_ptr<Lane> lane_;
  std::size_t packets_ = 0;
  std::size_t punted_ = 0;
  std::size_t copied_in_runs_ = 0;
};

/// Enqueues nothing. Refuses the given number of times while launches are collected, and logs whether they were.
class PickyStage final : public gpu::GpuStage {
 public:
  struct Log {
    unsigned refusals = 0;  // still to come
    std::vector<bool> collected;
  };
  explicit PickyStage(Log& log) : log_(log) {}
  bool enqueue(const gpu::DevicePackets&, const gpu::Stream& stream) noexcept override {
    cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
    const bool collected =
        cudaStreamIsCapturing(stream.get(), &status) == cudaSuccess && status == cudaStreamCaptureStatusActive;
    log_.collected.push_back(collected);
    if (!collected || log_.refusals == 0) return true;
    --log_.refusals;
    return false;
  }

 private:
  Log& log_;
};

TEST(CollectingLane, CollectsAgainSomeBatchesAfterARefusal) {
  PickyStage::Log log{1, {}};
  LaneShape shape{kBatchBytes, kBatchPackets, {}, false, Crossing::copy, {}};
  SegmentShape segment;
  segment.frames_up = true;
  segment.stages.push_back({0, 0});
  shape.segments.push_back(segment);
  LaneStages stages(1);
  stages[0].push_back(std::make_unique<PickyStage>(log));
  const auto lane = make_device_lane(shape, std::move(stages));
  gpu::PinnedBuffer<std::uint8_t> bytes(kBatchBytes);
  std::vector<PacketDescriptor> descriptors(kBatchPackets);
  Batch batch(bytes.span(), descriptors, {});
  ASSERT_TRUE(batch.append(testing::packet().eth().ipv4("10.0.0.1", "10.0.0.2").udp(1, 2).padded_to(60).bytes(), {}));
  EXPECT_FALSE(lane->start(batch, 0, {}));
  lane->abandon();
  for (std::uint32_t i = 0; i < gpu::Collecting::kFirstPause + 2; ++i) {
    ASSERT_TRUE(lane->start(batch, 0, {}));
    gpu::Progress progress;
    while ((progress = lane->progress()) == gpu::Progress::kRunning) continue;
    ASSERT_EQ(progress, gpu::Progress::kDone);
  }
  std::vector<bool> expected(gpu::Collecting::kFirstPause + 3, false);
  expected.front() = expected[expected.size() - 2] = expected.back() = true;
  EXPECT_EQ(log.collected, expected);
}

class DeviceLane : public ::testing::TestWithParam<Way> {};

INSTANTIATE_TEST_SUITE_P(Ways, DeviceLane, ::testing::ValuesIn(kWays),
                         [](const auto& way) { return std::to_string(way.index); });

TEST_P(DeviceLane, DoesWhatTheHostDoesInBatchesOfEverySize) {
  RandomFrames draw(1);
  Twins twins(GetParam());
  for (const std::size_t size : {0U, 1U, 31U, 32U, 33U, 255U, 256U, 257U, 1000U}) {
    twins.reset();
    while (twins.host().size() < size) ASSERT_TRUE(twins.append(draw.frame()));
    ASSERT_NO_FATAL_FAILURE(twins.start());
    ASSERT_NO_FATAL_FAILURE(twins.expect_what_the_host_does()) << size << " packets";
  }
}

TEST_P(DeviceLane, DoesWhatTheHostDoesInAFullBatch) {
  Twins twins(GetParam());
  const Frame small{testing::packet().eth().ipv4("10.0.0.1", "10.0.0.2").udp(1, 2).padded_to(60).bytes(), 60, {}};
  while (twins.append(small)) continue;
  EXPECT_EQ(twins.host().size(), kBatchPackets);
  ASSERT_NO_FATAL_FAILURE(twins.start());
  std::size_t whole = 0;
  ASSERT_NO_FATAL_FAILURE(twins.expect_what_the_host_does(&whole));
  EXPECT_EQ(whole, kBatchPackets);

  // A full batch, with frames of the maximum length in a capture, and the last frame at the very end.
  twins.reset();
  Frame jumbo{testing::packet().eth().ipv4("10.0.0.1", "10.0.0.2").tcp(1, 2).raw(Bytes(65000)).bytes(), 65054, {}};
  while (twins.append(jumbo)) continue;
  jumbo.bytes.resize(kBatchBytes - twins.host().used_bytes());
  ASSERT_TRUE(twins.append(jumbo));
  EXPECT_EQ(twins.host().used_bytes(), kBatchBytes);
  ASSERT_NO_FATAL_FAILURE(twins.start());
  ASSERT_NO_FATAL_FAILURE(twins.expect_what_the_host_does());
}

TEST(LentFrames, CrossInAFewCopiesIfTheyLieInOrder) {
  const Frame frame{testing::packet().eth().ipv4("10.0.0.1", "10.0.0.2").udp(1, 2).padded_to(1514).bytes(), 1514, {}};
  for (const Way& way : kWays) {
    SCOPED_TRACE(way.name);
    Twins twins(way);
    for (std::size_t n = 0; n < 2000; ++n) ASSERT_TRUE(twins.append(frame));
    ASSERT_NO_FATAL_FAILURE(twins.start());
    ASSERT_NO_FATAL_FAILURE(twins.expect_what_the_host_does());
    const bool lie_in_order = way.lent == Lent::close || way.lent == Lent::slots;
    EXPECT_EQ(twins.copied_in_runs(), lie_in_order && way.frames_up ? 1U : 0U);
  }
}

TEST_P(DeviceLane, IsUsedAgainAndAgain) {
  RandomFrames draw(2);
  Twins twins(GetParam());
  std::size_t whole = 0;
  for (int round = 0; round < 100; ++round) {
    twins.reset();
    for (std::uint32_t n = draw.below(2000); n > 0 && twins.append(draw.frame()); --n) continue;
    const bool timed = round % 3 == 1;  // beside batches whose launches are collected
    if (timed) twins.lane().take_times();
    const auto begin = std::chrono::steady_clock::now();
    ASSERT_NO_FATAL_FAILURE(twins.start());
    ASSERT_NO_FATAL_FAILURE(twins.expect_what_the_host_does(&whole)) << "round " << round;
    const auto times = twins.lane().times();
    ASSERT_EQ(times.has_value(), timed && GetParam().given) << "a lane with its own memory takes none";
    if (!times) continue;
    EXPECT_LT(times->to_device + times->kernels + times->to_host, std::chrono::steady_clock::now() - begin);
    if (twins.host().size() < 100) continue;  // all may have been dropped
    EXPECT_GT(times->kernels.count(), 0);
    if (GetParam().crossing != Crossing::by_size) {  // with zero copy, kernels that only move bytes
      EXPECT_GT(times->to_device.count(), 0);
      EXPECT_GT(times->to_host.count(), 0);
    }
  }
  EXPECT_GT(whole, twins.packets() / 4) << "most packets were damaged before they had anything to find";
  EXPECT_LT(whole, twins.packets());
  EXPECT_LT(twins.punted(), twins.packets() / 4);
  if (!GetParam().frames_up) {
    EXPECT_GT(twins.punted(), 0U);
  }
}

TEST_P(DeviceLane, SeveralAreInFlightOnSeveralStreams) {
  RandomFrames draw(3);
  std::vector<std::unique_ptr<Twins>> in_flight;
  for (int i = 0; i < 8; ++i) in_flight.push_back(std::make_unique<Twins>(GetParam()));
  for (int round = 0; round < 4; ++round) {
    for (const auto& twins : in_flight) {
      twins->reset();
      for (std::uint32_t n = 200 + draw.below(1000); n > 0 && twins->append(draw.frame()); --n) continue;
    }
    for (const auto& twins : in_flight) ASSERT_NO_FATAL_FAILURE(twins->start());
    for (const auto& twins : in_flight) ASSERT_NO_FATAL_FAILURE(twins->expect_what_the_host_does());
  }
}

/// Adds up to `size` random frames to the batch, as far as there is room. `lent`: every other one is lent from there.
void fill(Batch& batch, RandomFrames& draw, std::size_t size, PacketMemory::Region lent = PacketMemory::kBatch) {
  batch.reset(0);
  std::uint32_t at = 0;
  while (batch.size() < size) {
    const Frame frame = draw.frame();
    const Arrival arrival{.wire_length = frame.wire_length, .link_type = frame.link_type};
    if (lent == PacketMemory::kBatch || batch.size() % 2 == 0) {
      if (!batch.append(frame.bytes, arrival)) break;
      continue;
    }
    at += static_cast<std::uint32_t>(batch.size() % 33);
    if (!batch.lend(lent, at, frame.bytes.size(), arrival)) break;
    if (!frame.bytes.empty()) std::memcpy(batch.view(batch.size() - 1).frame, frame.bytes.data(), frame.bytes.size());
    at += static_cast<std::uint32_t>(frame.bytes.size());
  }
}

void run_segment(Lane& lane, const Batch& batch, std::size_t segment, std::span<std::uint8_t* const> frames) {
  ASSERT_TRUE(lane.start(batch, segment, frames));
  gpu::Progress progress;
  while ((progress = lane.progress()) == gpu::Progress::kRunning) continue;
  ASSERT_EQ(progress, gpu::Progress::kDone);
}

/// Two functions that extend frames and do not share them on the device. The host moves the frames in between.
class DeviceLaneTwice : public ::testing::TestWithParam<Crossing> {};

INSTANTIATE_TEST_SUITE_P(Crossings, DeviceLaneTwice,
                         ::testing::Values(Crossing::copy, Crossing::zero_copy, Crossing::by_size));

TEST_P(DeviceLaneTwice, HasWhatParsingFoundWhereItDoesNotParseAgain) {
  LaneShape shape{kBatchBytes, kBatchPackets, {}, true, GetParam(), {}};
  LaneStages stages(2);
  for (std::uint8_t s = 0; s < 2; ++s) {
    SegmentShape segment;
    segment.frames_up = true;
    segment.parses = s == 0;
    segment.verdicts_up = s > 0;
    segment.stages.push_back({s, sizeof(ProbeCore::Finding)});
    stages[s].push_back(std::make_unique<gpu::PerPacketStage<LookCore>>(LookCore{}));
    shape.segments.push_back(segment);
  }
  const auto lane = make_device_lane(shape, std::move(stages));
  gpu::PinnedBuffer<std::uint8_t> memory(kBatchBytes);
  std::vector<PacketDescriptor> descriptors(kBatchPackets);
  Batch batch(memory.span(), descriptors, {});
  RandomFrames draw(5);
  for (const std::size_t size : {1U, 40U, 1500U}) {
    SCOPED_TRACE(size);
    fill(batch, draw, size);
    std::vector<ProbeCore::Finding> parsed;
    for (const std::size_t segment : {0U, 1U}) {
      ASSERT_NO_FATAL_FAILURE(run_segment(*lane, batch, segment, {}));
      const auto* findings = reinterpret_cast<const ProbeCore::Finding*>(lane->results().findings[0]);
      for (std::size_t i = 0; i < batch.size(); ++i) {
        if (segment == 0) {
          parsed.push_back(findings[i]);
          // so that parsing again would find nothing
          std::memset(batch.view(i).frame, 0xff, batch.packets()[i].length);
          continue;
        }
        ASSERT_EQ(std::memcmp(&findings[i].layout, &parsed[i].layout, sizeof(PacketLayout)), 0) << "packet " << i;
        ASSERT_EQ(findings[i].flow_hash, parsed[i].flow_hash) << "packet " << i;
      }
    }
    ASSERT_TRUE(std::ranges::any_of(parsed,
                                    [](const ProbeCore::Finding& finding) {
                                      return finding.layout.has(PacketLayout::kTransportHeader);
                                    }) ||
                size == 1);
  }
}

TEST_P(DeviceLaneTwice, TakesFramesThatHaveGrownAndMoved) {
  constexpr std::uint32_t kHead = 7;
  constexpr std::uint32_t kTail = 5;
  LaneShape shape{kBatchBytes, kBatchPackets, {kHead, kTail}, false, GetParam(), {}, 2 * kBatchBytes};
  LaneStages stages(2);
  for (std::uint8_t s = 0; s < 2; ++s) {
    SegmentShape segment;
    segment.frames_up = segment.frames_down = true;
    segment.verdicts_up = s > 0;
    segment.stages.push_back({s, 0, true});
    stages[s].push_back(std::make_unique<gpu::PerPacketStage<GrowCore>>(GrowCore{kHead, kTail}));
    shape.segments.push_back(segment);
  }
  const auto lane = make_device_lane(shape, std::move(stages));
  gpu::PinnedBuffer<std::uint8_t> memory(kBatchBytes);
  gpu::PinnedBuffer<std::uint8_t> moved(2 * kBatchBytes);
  std::vector<PacketDescriptor> descriptors(kBatchPackets);
  gpu::PinnedBuffer<std::uint8_t> of_port(kBatchBytes);
  PacketMemory lent;
  const PacketMemory::Region region = lent.add(of_port.span()).value();
  Batch batch(memory.span(), descriptors, {}, &lent);
  RandomFrames draw(4);
  for (const std::size_t size : {1U, 2U, 40U, 41U, 1500U, 1501U}) {
    SCOPED_TRACE(size);
    fill(batch, draw, size, size % 2 == 0 ? region : PacketMemory::kBatch);
    ASSERT_NO_FATAL_FAILURE(run_segment(*lane, batch, 0, {}));

    const SegmentResults& results = lane->results();
    std::vector<std::uint8_t*> frames;
    std::vector<Bytes> expected;
    std::uint8_t* returned = results.frames;
    std::size_t at = 0;
    for (std::size_t i = 0; i < batch.size(); ++i) {
      PacketDescriptor& packet = batch.packets()[i];
      ASSERT_EQ(results.lengths[0][i], packet.length + kHead + kTail);
      ASSERT_EQ(std::memcmp(returned + kHead, batch.view(i).frame, packet.length), 0) << "packet " << i;
      packet.wire_length += kHead + kTail;
      packet.length += kHead + kTail;
      frames.push_back(moved.data() + at + i % 33);
      std::memcpy(frames.back(), returned, packet.length);
      expected.emplace_back(returned, returned + packet.length);
      returned += aligned_frame(packet.length);
      at += aligned_frame(packet.length) + 48;
      if (i % 5 == 2) packet.verdict = Verdict::drop(0);  // between forwarded packets
    }
    ASSERT_NO_FATAL_FAILURE(run_segment(*lane, batch, 1, frames));
    returned = lane->results().frames;
    for (std::size_t i = 0; i < batch.size(); ++i) {
      ASSERT_EQ(lane->results().verdicts[i].alive(), i % 5 != 2);
      if (i % 5 == 2) continue;
      ASSERT_EQ(lane->results().lengths[0][i], expected[i].size() + kHead + kTail);
      ASSERT_EQ(std::memcmp(returned + kHead, expected[i].data(), expected[i].size()), 0) << "packet " << i;
      returned += aligned_frame(expected[i].size() + kHead + kTail);
    }
  }
}

/// The captures of $PENSTOCK_CORPUS, and the examples in the bundle or source tree of this program.
std::vector<std::string> captures() {
  namespace fs = std::filesystem;
  std::error_code none;
  const fs::path program = fs::read_symlink("/proc/self/exe", none);
  std::vector<fs::path> folders{program.parent_path().parent_path() / "examples", PENSTOCK_SOURCE_DIR "/examples"};
  if (const char* corpus = std::getenv("PENSTOCK_CORPUS")) folders.emplace_back(fs::path(corpus) / "captures");
  std::vector<std::string> paths;
  for (const fs::path& folder : folders) {
    if (!fs::is_directory(folder)) continue;
    for (const auto& entry : fs::recursive_directory_iterator(folder)) {
      if (entry.path().filename().string().find(".pcap") != std::string::npos) paths.push_back(entry.path().string());
    }
  }
  return paths;
}

TEST_P(DeviceLane, DoesWhatTheHostDoesInCaptures) {
  const auto paths = captures();
  if (paths.empty()) GTEST_SKIP() << "no captures; PENSTOCK_CORPUS names a folder of them";
  Twins twins(GetParam());
  std::size_t whole = 0;
  const auto compare = [&] {
    ASSERT_NO_FATAL_FAILURE(twins.start());
    ASSERT_NO_FATAL_FAILURE(twins.expect_what_the_host_does(&whole));
    twins.reset();
  };
  port::ReadControl control;
  for (const std::string& path : paths) {
    auto reader = port::CaptureReader::open(path, control);
    if (!reader) continue;  // an unsupported link type, or damaged on purpose
    port::CapturedFrame captured;
    while (reader->next(captured) == port::CaptureReader::Status::packet) {
      const Frame frame{{captured.bytes.begin(), captured.bytes.end()}, captured.wire_length, captured.link_type};
      if (twins.append(frame)) continue;
      ASSERT_NO_FATAL_FAILURE(compare()) << path;
      ASSERT_TRUE(twins.append(frame)) << path;
    }
  }
  ASSERT_NO_FATAL_FAILURE(compare());
  std::printf("%zu captures, %zu packets, %zu of them with a whole transport header, %zu punted\n", paths.size(),
              twins.packets(), whole, twins.punted());
  EXPECT_GT(whole, 0U);
}

}  // namespace
}  // namespace penstock::ring
