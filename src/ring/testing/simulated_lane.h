// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// A lane without a device, for tests. It has its own memory. Only what the shape of the segment transfers gets into
// that memory and back from it. It can be slow or fail.

#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "packet/flow_hash.h"
#include "packet/parse_core.h"
#include "ring/lane.h"

namespace penstock::ring::testing {

/// The behaviour of a simulated device, apart from its work. Its lanes share it, and the test may change it at any
/// time.
struct Behaviour {
  std::function<unsigned()> polls_until_done = [] { return 1U; };  // called at each start
  std::function<bool()> refuses = [] { return false; };            // called at each start
  // called at each start; the failure shows when the work would be done
  std::function<bool()> fails = [] { return false; };
  unsigned in_flight = 0;
  unsigned most_in_flight = 0;
  unsigned abandoned = 0;
  // Segments that could not be sent in one piece: the frames are not in ascending order, or not in one memory.
  unsigned scattered = 0;
};

/// A stage of a simulated lane.
class SimulatedStage : public DeviceStage {
 public:
  /// Returns the verdict on a packet, like a stage on a device. `finding` has findings_bytes; null if the stage has no
  /// findings. `state` has state_bytes; null if the stage takes none.
  using Work = std::function<Verdict(PacketView packet, std::byte* finding, const std::byte* state)>;

  /// `passes`: called at batch boundaries.
  explicit SimulatedStage(
      Work does, std::function<void()> passes = [] {})
      : work(std::move(does)), passes_(std::move(passes)) {}

  void begin_batch() noexcept override { passes_(); }

  const Work work;

 private:
  const std::function<void()> passes_;
};

class SimulatedLane final : public Lane {
 public:
  using Work = SimulatedStage::Work;

  SimulatedLane(LaneShape shape, std::vector<std::vector<Work>> works, Behaviour& behaviour)
      : SimulatedLane(std::move(shape), made_of(std::move(works)), behaviour) {}
  /// All stages are SimulatedStages.
  SimulatedLane(LaneShape shape, LaneStages stages, Behaviour& behaviour)
      : shape_(std::move(shape)), stages_(std::move(stages)), behaviour_(behaviour), frames_(shape_.segments.size()) {}

  void exchange_stages(LaneStages& stages) noexcept override { stages_.swap(stages); }

  std::byte* states(std::size_t segment, std::size_t stage) noexcept override {
    const std::uint32_t bytes = shape_.segments[segment].stages[stage].state_bytes;
    if (bytes == 0) return nullptr;
    states_.resize(std::max(states_.size(), stage + 1));
    states_[stage].resize(shape_.batch_packets * bytes);
    return states_[stage].data();
  }
  bool start(const Batch& batch, std::size_t segment, std::span<std::uint8_t* const> frames) noexcept override {
    segment_ = segment;
    busy_ = true;
    if (segment == 0) begin_batch();
    behaviour_.most_in_flight = std::max(behaviour_.most_in_flight, ++behaviour_.in_flight);
    if (behaviour_.refuses()) return false;
    polls_ = behaviour_.polls_until_done();
    fails_ = behaviour_.fails();
    crossed_ = {};
    if (!std::exchange(pictures_due_, false)) pictured_.clear();
    pictures_.clear();
    if (shape().sends_packets) {
      whole_frames_ = shape().frames_up;
      take_in(batch, frames);
    }
    if (shape().verdicts_up) bring_up_to_date(batch, frames);
    work();
    pack();
    return true;
  }
  gpu::Progress progress() noexcept override {
    if (polls_ > 0) return --polls_, gpu::Progress::kRunning;
    if (fails_) return gpu::Progress::kFailed;
    leave();
    return gpu::Progress::kDone;
  }
  const SegmentResults& results() const noexcept override { return results_; }
  void abandon() noexcept override {
    if (busy_) ++behaviour_.abandoned;
    leave();
  }
  void take_pictures(std::span<const std::uint32_t> packets) noexcept override {
    pictured_.assign(packets.begin(), packets.end());
    pictures_due_ = true;
  }
  Picture picture(std::size_t stages, std::size_t packet) const noexcept override {
    const Packet& seen = pictures_[stages][packet];
    const std::size_t bytes = whole_frames_ ? seen.descriptor.length : std::min(seen.descriptor.length, kHeaderBytes);
    return {&seen.descriptor, std::span(seen.bytes).subspan(seen.descriptor.offset, bytes)};
  }
  std::uint32_t fetch(std::size_t packet, PacketDescriptor& descriptor, std::span<std::uint8_t> to) noexcept override {
    const Packet& seen = packets_[packet];
    descriptor = seen.descriptor;
    const std::size_t bytes = whole_frames_ ? descriptor.length : std::min(descriptor.length, kHeaderBytes);
    std::copy_n(seen.bytes.begin() + descriptor.offset, std::min(bytes, to.size()), to.begin());
    return descriptor.length;
  }
  void begin_batch() noexcept override {
    for (auto& of_segment : stages_) {
      for (auto& stage : of_segment) stage->begin_batch();
    }
  }
  /// Of a packet's frame on the device.
  [[nodiscard]] std::uint32_t length_of(std::size_t packet) const noexcept {
    return packets_[packet].descriptor.length;
  }
  Crossed crossed() const noexcept override { return crossed_; }

 private:
  struct Packet {
    PacketDescriptor descriptor;
    std::vector<std::uint8_t> bytes;  // the frame with its room; bytes that did not cross have an arbitrary value
    PacketView view() { return {bytes.data() + descriptor.offset, &descriptor}; }
  };

  [[nodiscard]] static LaneStages made_of(std::vector<std::vector<Work>> works) {
    LaneStages stages;
    for (std::vector<Work>& of_segment : works) {
      stages.emplace_back();
      for (Work& work : of_segment) stages.back().push_back(std::make_unique<SimulatedStage>(std::move(work)));
    }
    return stages;
  }

  [[nodiscard]] const SegmentShape& shape() const { return shape_.segments[segment_]; }

  void leave() {
    if (std::exchange(busy_, false)) --behaviour_.in_flight;
  }

  [[nodiscard]] bool in_one_piece(const Batch& batch, std::span<std::uint8_t* const> frames) const {
    const auto address = [&](std::size_t i) { return reinterpret_cast<std::uintptr_t>(frames[i]); };
    std::uintptr_t first = 0;
    std::uintptr_t next = 0;
    for (std::size_t i = 0; i < frames.size(); ++i) {
      const PacketDescriptor& packet = batch.packets()[i];
      if (!packet.verdict.alive() || (batch.lent() > 0 && frames[i] == batch.frame(packet))) continue;
      if (address(i) < next) return false;
      if (first == 0) first = address(i);
      next = address(i) + packet.length;
    }
    return next - first <= std::max(shape_.sent_bytes, shape_.batch_bytes);
  }

  void take_in(const Batch& batch, std::span<std::uint8_t* const> frames) {
    const std::vector<Packet> before = std::exchange(packets_, {});
    if (!in_one_piece(batch, frames)) ++behaviour_.scattered;
    for (std::size_t i = 0; i < batch.size(); ++i) {
      const PacketDescriptor& on_host = batch.packets()[i];
      const std::uint8_t* const frame = frames.empty() ? batch.frame(on_host) : frames[i];
      const bool sent = frames.empty() || on_host.verdict.alive();
      Packet packet;
      packet.descriptor.length = sent ? on_host.length : 0;
      packet.descriptor.wire_length = on_host.wire_length;
      packet.descriptor.in_port = on_host.in_port;
      packet.descriptor.link_type = on_host.link_type;
      const std::uint32_t length = packet.descriptor.length;
      packet.descriptor.offset = shape_.room.head;
      packet.bytes.assign(shape_.room.head + length + shape_.room.tail, 0xa5);
      const std::uint32_t crosses = shape().frames_up ? length : std::min(length, kHeaderBytes);
      if (crosses > 0) std::memcpy(packet.view().frame, frame, crosses);
      crossed_.to_device += kIndexBytes + aligned_frame(crosses);
      if (shape().parses) {
        parse(packet.view());
      } else {
        packet.descriptor.layout = before[i].descriptor.layout;
        packet.descriptor.flow_hash = before[i].descriptor.flow_hash;
      }
      const PacketLayout& layout = packet.descriptor.layout;
      const bool reads_beyond_headers = crosses < length && (layout.network_offset + 40U > kHeaderBytes ||
                                                             layout.transport_offset + 20U > kHeaderBytes);
      if (reads_beyond_headers) packet.descriptor.verdict = Verdict::punt();
      if (shape_.hash_flows && shape().parses) packet.descriptor.flow_hash = flow_hash(packet.view());
      packets_.push_back(std::move(packet));
    }
  }

  void bring_up_to_date(const Batch& batch, std::span<std::uint8_t* const> frames) {
    std::vector<std::uint8_t> record(shape().up.bytes);
    for (std::size_t i = 0; i < packets_.size(); ++i) {
      PacketDescriptor on_host = batch.packets()[i];
      Packet& packet = packets_[i];
      crossed_.to_device += kVerdictBytes + shape().up.bytes;
      if (packet.descriptor.verdict.kind != VerdictKind::punt) packet.descriptor.verdict = on_host.verdict;
      if (!packet.descriptor.verdict.alive() || shape().up.empty()) continue;
      std::uint8_t* const frame = frames.empty() ? batch.frame(on_host) : frames[i];
      gather(shape().up, {frame, &on_host}, record.data());
      scatter(shape().up, record.data(), packet.view());
    }
  }

  void work() {
    findings_.assign(shape().stages.size(), {});
    lengths_.assign(shape().stages.size(), {});
    keep_pictures();
    for (std::size_t s = 0; s < shape().stages.size(); ++s) {
      const SegmentShape::Stage& stage = shape().stages[s];
      findings_[s].resize(packets_.size() * stage.findings_bytes);
      const std::byte* const sent_states = states(segment_, s);
      crossed_.to_device += packets_.size() * stage.state_bytes;
      for (std::size_t i = 0; i < packets_.size(); ++i) {
        Packet& packet = packets_[i];
        if (!packet.descriptor.verdict.alive()) continue;
        std::byte* const finding = stage.findings_bytes == 0 ? nullptr : findings_[s].data() + i * stage.findings_bytes;
        const std::byte* const state = sent_states == nullptr ? nullptr : sent_states + i * stage.state_bytes;
        const auto& does = static_cast<const SimulatedStage&>(*stages_[segment_][s]).work;
        packet.descriptor.verdict = does(packet.view(), finding, state);
        packet.descriptor.verdict.nf = stage.function;
        if (!stage.changes_shape || !packet.descriptor.verdict.alive()) continue;
        parse(packet.view());
        if (shape_.hash_flows) packet.descriptor.flow_hash = flow_hash(packet.view());
      }
      keep_pictures();
      if (!stage.changes_shape) continue;
      for (const Packet& packet : packets_) lengths_[s].push_back(packet.descriptor.length);
    }
  }

  void keep_pictures() {
    std::vector<Packet>& pictures = pictures_.emplace_back();
    for (const std::uint32_t packet : pictured_) pictures.push_back(packets_[packet]);
  }

  void pack() {
    verdicts_.clear();
    records_.clear();
    std::vector<std::uint8_t>& frames = frames_[segment_];
    frames.clear();
    for (Packet& packet : packets_) {
      verdicts_.push_back(packet.descriptor.verdict);
      crossed_.to_host += kVerdictBytes;
      if (!packet.descriptor.verdict.alive()) continue;
      if (!shape().down.empty()) {
        records_.resize(records_.size() + shape().down.bytes);
        gather(shape().down, packet.view(), records_.data() + records_.size() - shape().down.bytes);
      }
      if (shape().frames_down) {
        frames.insert(frames.end(), packet.view().frame, packet.view().frame + packet.descriptor.length);
        frames.resize(aligned_frame(frames.size()));
      }
    }
    results_ = {verdicts_, records_.data(), frames.data(), {}, {}};
    for (std::size_t s = 0; s < findings_.size(); ++s) {
      results_.findings.push_back(findings_[s].data());
      results_.lengths.push_back(shape().stages[s].changes_shape ? lengths_[s].data() : nullptr);
      crossed_.to_host += findings_[s].size() + lengths_[s].size() * kLengthBytes;
    }
    crossed_.to_host += records_.size() + frames.size();
  }

  LaneShape shape_;
  LaneStages stages_;
  Behaviour& behaviour_;
  std::size_t segment_ = 0;
  bool busy_ = false;
  bool fails_ = false;
  unsigned polls_ = 0;
  Crossed crossed_;
  std::vector<Packet> packets_;
  bool whole_frames_ = false;
  std::vector<std::uint32_t> pictured_;
  bool pictures_due_ = false;
  std::vector<std::vector<Packet>> pictures_;  // by stages that have run
  std::vector<Verdict> verdicts_;
  std::vector<std::uint8_t> records_;
  std::vector<std::vector<std::uint8_t>> frames_;  // by segment
  std::vector<std::vector<std::byte>> findings_;   // by stage
  std::vector<std::vector<std::byte>> states_;     // by stage, as written by the host
  std::vector<std::vector<std::uint32_t>> lengths_;
  SegmentResults results_;
};

}  // namespace penstock::ring::testing
