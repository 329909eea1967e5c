// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include <cuda_runtime.h>

#include <algorithm>
#include <cassert>
#include <cstring>
#include <utility>

#include "gpu/memory.h"
#include "gpu/per_packet.cuh"
#include "packet/flow_hash.h"
#include "packet/parse_core.h"
#include "ring/lane.h"

namespace penstock::ring {
namespace {

using gpu::blocks_for;
using gpu::kThreadsPerBlock;

/// What the device needs of a packet's descriptor.
struct alignas(16) IndexEntry {
  std::uint32_t offset;  // of the frame, or of its headers, in what crosses
  std::uint32_t length;
  std::uint32_t wire_length;
  PortIndex in_port;
  LinkType link_type;
  std::uint8_t unused;
};
static_assert(sizeof(IndexEntry) == kIndexBytes);

/// Where frames lie on the device.
struct Placement {
  enum class Kind : std::uint8_t {
    as_sent,  // where the copy engine put them
    slots,    // in the same order, each with head- and tailroom
    headers,  // each in a slot of kHeaderBytes
  };
  Kind kind = Kind::as_sent;
  std::uint32_t head = 0;  // multiples of kFrameAlignment
  std::uint32_t tail = 0;

  [[nodiscard]] __host__ __device__ std::uint32_t offset(std::uint32_t sent, std::uint32_t i) const noexcept {
    switch (kind) {
      case Kind::slots: return sent + i * (head + tail) + head;
      case Kind::headers: return i * kHeaderBytes;
      case Kind::as_sent: break;
    }
    return sent;
  }
};

/// Threads that copy a frame together, 16 bytes each at a time.
constexpr unsigned kCopyGroup = 16;

/// `to` is aligned, and `from` where no stage has moved the frame's beginning.
__device__ void copy_frame(const std::uint8_t* from, std::uint8_t* to, std::uint32_t length, unsigned thread) {
  const std::uint32_t chunks = (length + kFrameAlignment - 1) / kFrameAlignment;
  if (reinterpret_cast<std::uintptr_t>(from) % kFrameAlignment == 0) {
    const auto* source = reinterpret_cast<const uint4*>(from);
    auto* target = reinterpret_cast<uint4*>(to);
    for (std::uint32_t c = thread; c < chunks; c += kCopyGroup) target[c] = source[c];
  } else if (reinterpret_cast<std::uintptr_t>(from) % 4 == 0) {
    const auto* source = reinterpret_cast<const std::uint32_t*>(from);
    auto* target = reinterpret_cast<std::uint32_t*>(to);
    for (std::uint32_t w = thread; w < (length + 3) / 4; w += kCopyGroup) target[w] = source[w];
  } else {
    for (std::uint32_t b = thread; b < length; b += kCopyGroup) to[b] = from[b];
  }
}

/// Lays the frames, or their headers, in their slots. `sent` is the host's memory with zero copy.
__global__ void __launch_bounds__(kThreadsPerBlock)
    lay_in_slots(const std::uint8_t* sent, const IndexEntry* index, std::uint8_t* frames, Placement placement,
                 std::uint32_t count) {
  const std::uint32_t thread = blockIdx.x * kThreadsPerBlock + threadIdx.x;
  const std::uint32_t i = thread / kCopyGroup;
  if (i >= count) return;
  const IndexEntry entry = index[i];
  const bool headers = placement.kind == Placement::Kind::headers;
  copy_frame(sent + entry.offset, frames + placement.offset(entry.offset, i),
             headers ? min(entry.length, kHeaderBytes) : entry.length, thread % kCopyGroup);
}

/// Whether parsing a frame of which only kHeaderBytes are there looked behind them.
__device__ bool reaches_behind(const PacketLayout& layout, std::uint32_t length) {
  // The longest that parsing looks at once: an IP header without options, and a TCP header without.
  return length > kHeaderBytes && (layout.network_offset + sizeof(Ipv6Header) > kHeaderBytes ||
                                   layout.transport_offset + sizeof(TcpHeader) > kHeaderBytes);
}

/// Makes the descriptors: a thread for each packet.
__global__ void __launch_bounds__(kThreadsPerBlock)
    describe(const IndexEntry* index, std::uint8_t* frames, PacketDescriptor* packets, Placement placement,
             bool only_headers, bool hash_flows, std::uint32_t count) {
  const std::uint32_t i = blockIdx.x * kThreadsPerBlock + threadIdx.x;
  if (i >= count) return;
  const IndexEntry entry = index[i];
  PacketDescriptor packet;
  packet.offset = placement.offset(entry.offset, i);
  packet.length = entry.length;
  packet.wire_length = entry.wire_length;
  packet.in_port = entry.in_port;
  packet.link_type = entry.link_type;
  const PacketView view{frames + packet.offset, &packet};
  // Behind the headers that are there lie those of the next packet, or the slack at the end: what is found there is
  // noticed and not believed.
  parse(view);
  if (only_headers && reaches_behind(packet.layout, packet.length)) {
    packet.verdict = Verdict::punt();
  }
  if (hash_flows) packet.flow_hash = flow_hash(view);
  packets[i] = packet;
}

/// What the CPU decided and changed before the segment.
__global__ void __launch_bounds__(kThreadsPerBlock)
    bring_up_to_date(const Verdict* verdicts, const std::uint8_t* records, RecordLayout layout, std::uint8_t* frames,
                     PacketDescriptor* packets, std::uint32_t count) {
  const std::uint32_t i = blockIdx.x * kThreadsPerBlock + threadIdx.x;
  if (i >= count) return;
  PacketDescriptor& packet = packets[i];
  const Verdict verdict = verdicts[i];
  // One that was found to be punted when it came stays so.
  if (!verdict.alive() || packet.verdict.kind != VerdictKind::punt) packet.verdict = verdict;
  if (!packet.verdict.alive() || layout.empty()) return;
  scatter(layout, records + std::size_t{i} * layout.bytes, {frames + packet.offset, &packet});
}

/// After a stage that moves the bounds of frames.
__global__ void __launch_bounds__(kThreadsPerBlock)
    parse_again(std::uint8_t* frames, PacketDescriptor* packets, bool hash_flows, std::uint32_t count) {
  const std::uint32_t i = blockIdx.x * kThreadsPerBlock + threadIdx.x;
  if (i >= count || !packets[i].verdict.alive()) return;
  const PacketView view{frames + packets[i].offset, &packets[i]};
  parse(view);
  if (hash_flows) packets[i].flow_hash = flow_hash(view);
}

/// What of a batch goes back: how many packets, and units of kFrameAlignment.
struct Sum {
  std::uint32_t packets;
  std::uint32_t units;

  friend __device__ Sum operator+(Sum a, Sum b) { return {a.packets + b.packets, a.units + b.units}; }
};

__device__ Sum share_of(const PacketDescriptor& packet) {
  if (!packet.verdict.alive()) return {0, 0};
  return {1, (packet.length + kFrameAlignment - 1) / kFrameAlignment};
}

/// The sum over the threads before this one; `total`, over all of the block.
__device__ Sum sum_before(Sum mine, Sum& total) {
  __shared__ Sum of_warp[kThreadsPerBlock / 32];
  const unsigned lane = threadIdx.x % 32;
  const unsigned warp = threadIdx.x / 32;
  Sum upto = mine;
  for (unsigned step = 1; step < 32; step *= 2) {
    const Sum left{__shfl_up_sync(~0U, upto.packets, step), __shfl_up_sync(~0U, upto.units, step)};
    if (lane >= step) upto = upto + left;
  }
  if (lane == 31) of_warp[warp] = upto;
  __syncthreads();
  Sum before{0, 0};
  total = {0, 0};
  for (unsigned w = 0; w < kThreadsPerBlock / 32; ++w) {
    if (w == warp) before = total;
    total = total + of_warp[w];
  }
  __syncthreads();
  return before + Sum{upto.packets - mine.packets, upto.units - mine.units};
}

/// Results that all packets have; and the sum of each block's share, for `pack_records`.
__global__ void __launch_bounds__(kThreadsPerBlock) measure(const PacketDescriptor* packets, Verdict* verdicts,
                                                            std::uint32_t* lengths, Sum* sums, std::uint32_t count) {
  const std::uint32_t i = blockIdx.x * kThreadsPerBlock + threadIdx.x;
  Sum share{0, 0};
  if (i < count) {
    verdicts[i] = packets[i].verdict;
    if (lengths != nullptr) lengths[i] = packets[i].length;
    share = share_of(packets[i]);
  }
  Sum total;
  sum_before(share, total);
  if (threadIdx.x == 0) sums[blockIdx.x] = total;
}

/// Compacts the records of the packets that are still forwarded, and says where their frames go. `records` is the
/// host's memory with zero copy, and null where there are none; `places`, in units, likewise.
__global__ void __launch_bounds__(kThreadsPerBlock)
    pack_records(std::uint8_t* frames, PacketDescriptor* packets, const Sum* sums, RecordLayout layout,
                 std::uint8_t* records, std::uint32_t* places, std::uint32_t count) {
  Sum part{0, 0};
  for (std::uint32_t b = threadIdx.x; b < blockIdx.x; b += kThreadsPerBlock) part = part + sums[b];
  Sum before_block;
  sum_before(part, before_block);

  const std::uint32_t i = blockIdx.x * kThreadsPerBlock + threadIdx.x;
  const Sum share = i < count ? share_of(packets[i]) : Sum{0, 0};
  Sum total;
  const Sum before = before_block + sum_before(share, total);
  if (share.packets == 0) return;
  if (places != nullptr) places[i] = before.units;
  if (records == nullptr) return;
  PacketDescriptor& packet = packets[i];
  alignas(16) std::uint8_t record[256];
  gather(layout, {frames + packet.offset, &packet}, record);
  auto* out = reinterpret_cast<std::uint32_t*>(records + std::size_t{before.packets} * layout.bytes);
  for (std::uint32_t w = 0; w < layout.bytes / 4; ++w) out[w] = reinterpret_cast<const std::uint32_t*>(record)[w];
}

/// Compacts the frames of the packets that are still forwarded. `packed` is the host's memory with zero copy.
__global__ void __launch_bounds__(kThreadsPerBlock)
    pack_frames(const std::uint8_t* frames, const PacketDescriptor* packets, const std::uint32_t* places,
                std::uint8_t* packed, std::uint32_t count) {
  const std::uint32_t thread = blockIdx.x * kThreadsPerBlock + threadIdx.x;
  const std::uint32_t i = thread / kCopyGroup;
  if (i >= count || !packets[i].verdict.alive()) return;
  copy_frame(frames + packets[i].offset, packed + std::size_t{places[i]} * kFrameAlignment, packets[i].length,
             thread % kCopyGroup);
}

/// Writes results into the host's memory.
__global__ void __launch_bounds__(kThreadsPerBlock) publish(const uint2* from, uint2* to, std::size_t count) {
  const std::size_t i = std::size_t{blockIdx.x} * kThreadsPerBlock + threadIdx.x;
  if (i < count) to[i] = from[i];
}

template <typename... Parameters, typename... Arguments>
[[nodiscard]] bool launch(void (*kernel)(Parameters...), std::size_t threads, const gpu::Stream& stream,
                          Arguments... arguments) noexcept {
  cudaLaunchConfig_t launch{};
  launch.gridDim = blocks_for(threads);
  launch.blockDim = kThreadsPerBlock;
  launch.stream = stream.get();
  return cudaLaunchKernelEx(&launch, kernel, Parameters(arguments)...) == cudaSuccess;
}

class DeviceLane final : public Lane {
 public:
  DeviceLane(LaneShape shape, std::vector<std::vector<std::unique_ptr<gpu::GpuStage>>> stages);
  ~DeviceLane() override { abandon(); }

  bool start(const Batch& batch, std::size_t segment, std::span<std::uint8_t* const> frames) noexcept override;
  gpu::Progress progress() noexcept override;
  const SegmentResults& results() const noexcept override { return results_; }
  void abandon() noexcept override;
  void begin_batch() noexcept override;
  Crossed crossed() const noexcept override { return crossed_; }

 private:
  enum class Phase : std::uint8_t { idle, results, packed };

  bool send_batch(const Batch& batch) noexcept;
  bool send_changes(const Batch& batch, std::span<std::uint8_t* const> frames) noexcept;
  bool run_stages() noexcept;
  bool fetch_results() noexcept;
  bool fetch_packed() noexcept;
  bool up(void* to, const void* from, std::size_t bytes) noexcept;
  bool down(void* to, const void* from, std::size_t bytes) noexcept;
  [[nodiscard]] bool zero_copy() const noexcept { return shape_.crossing == Crossing::zero_copy; }
  [[nodiscard]] const SegmentShape& segment() const noexcept { return shape_.segments[segment_]; }

  LaneShape shape_;
  std::vector<std::vector<std::unique_ptr<gpu::GpuStage>>> stages_;
  Placement placement_;
  gpu::Stream stream_;
  gpu::Event done_;
  Phase phase_ = Phase::idle;
  std::size_t segment_ = 0;
  std::uint32_t count_ = 0;
  bool whole_frames_ = false;  // of this batch
  Crossed crossed_;
  SegmentResults results_;

  // Up.
  gpu::PinnedBuffer<IndexEntry> index_;
  gpu::PinnedBuffer<std::uint8_t> headers_;  // where the host gathers them
  gpu::PinnedBuffer<std::uint8_t> changes_;  // verdicts, then records
  gpu::DeviceBuffer<IndexEntry> device_index_;
  gpu::DeviceBuffer<std::uint8_t> device_changes_;
  gpu::DeviceBuffer<std::uint8_t> sent_;  // frames as they cross
  // There.
  gpu::DeviceBuffer<std::uint8_t> slots_;
  gpu::DeviceBuffer<PacketDescriptor> packets_;
  gpu::DevicePackets view_;
  // Down.
  gpu::DeviceBuffer<Sum> sums_;
  gpu::DeviceBuffer<std::uint32_t> places_;         // of frames in what goes down, in units of kFrameAlignment
  gpu::DeviceBuffer<std::uint8_t> device_results_;  // verdicts, lengths, findings
  gpu::PinnedBuffer<std::uint8_t> host_results_;
  gpu::DeviceBuffer<std::uint8_t> device_packed_;             // records, or frames
  std::vector<gpu::PinnedBuffer<std::uint8_t>> host_packed_;  // by segment: frames stay while later ones run
};

/// Parsing what is behind a frame's headers reads so far at most: the furthest that 16-bit offsets reach.
constexpr std::size_t kSlack = 0x10000 + 0x1000;

constexpr std::uint32_t aligned(std::uint32_t length) noexcept {
  return static_cast<std::uint32_t>(aligned_frame(length));
}
constexpr std::size_t aligned8(std::size_t bytes) noexcept { return (bytes + 7) / 8 * 8; }

DeviceLane::DeviceLane(LaneShape shape, std::vector<std::vector<std::unique_ptr<gpu::GpuStage>>> stages)
    : shape_(std::move(shape)), stages_(std::move(stages)) {
  const std::size_t packets = shape_.batch_packets;
  const bool has_room = shape_.room.head + shape_.room.tail > 0;
  placement_.head = aligned(shape_.room.head);
  placement_.tail = aligned(shape_.room.tail);
  const std::size_t slot_bytes = shape_.batch_bytes + packets * (placement_.head + placement_.tail);
  const bool frames_up = shape_.segments.front().frames_up;

  std::size_t change_bytes = 0;
  std::size_t result_bytes = 0;
  std::size_t packed_bytes = 0;
  for (const SegmentShape& segment : shape_.segments) {
    change_bytes = std::max(change_bytes, aligned8(packets * kVerdictBytes) + packets * segment.up.bytes);
    std::size_t bytes = aligned8(packets * kVerdictBytes);
    if (segment.lengths_down) bytes += aligned8(packets * kLengthBytes);
    for (const SegmentShape::Stage& stage : segment.stages) bytes += aligned8(packets * stage.findings_bytes);
    result_bytes = std::max(result_bytes, bytes);
    const std::size_t packed = aligned_frame(packets * segment.down.bytes) + (segment.frames_down ? slot_bytes : 0);
    packed_bytes = std::max(packed_bytes, packed);
    host_packed_.emplace_back(packed);
  }
  index_ = gpu::PinnedBuffer<IndexEntry>(packets);
  device_index_ = gpu::DeviceBuffer<IndexEntry>(packets);
  if (!frames_up && !zero_copy()) headers_ = gpu::PinnedBuffer<std::uint8_t>(packets * kHeaderBytes);
  if (shape_.segments.size() > 1 || shape_.segments.front().verdicts_up) {
    changes_ = gpu::PinnedBuffer<std::uint8_t>(change_bytes);
    device_changes_ = gpu::DeviceBuffer<std::uint8_t>(change_bytes);
  }
  if (!zero_copy()) sent_ = gpu::DeviceBuffer<std::uint8_t>(shape_.batch_bytes + kSlack);
  if (zero_copy() || has_room) {
    slots_ = gpu::DeviceBuffer<std::uint8_t>(std::max(slot_bytes, packets * kHeaderBytes) + kSlack);
  }
  packets_ = gpu::DeviceBuffer<PacketDescriptor>(packets);
  sums_ = gpu::DeviceBuffer<Sum>(blocks_for(packets));
  places_ = gpu::DeviceBuffer<std::uint32_t>(packets);
  device_results_ = gpu::DeviceBuffer<std::uint8_t>(result_bytes);
  host_results_ = gpu::PinnedBuffer<std::uint8_t>(result_bytes);
  if (!zero_copy()) device_packed_ = gpu::DeviceBuffer<std::uint8_t>(packed_bytes);
  // The slack is read, though what is found there is of no consequence.
  if (sent_.size() > 0 && !gpu::zero_async(sent_.data(), sent_.size(), stream_)) return;
  if (slots_.size() > 0 && !gpu::zero_async(slots_.data(), slots_.size(), stream_)) return;
  stream_.wait();
}

bool DeviceLane::up(void* to, const void* from, std::size_t bytes) noexcept {
  crossed_.to_device += bytes;
  return bytes == 0 || gpu::copy_async(to, from, bytes, stream_);
}

bool DeviceLane::down(void* to, const void* from, std::size_t bytes) noexcept {
  crossed_.to_host += bytes;
  return bytes == 0 || gpu::copy_async(to, from, bytes, stream_);
}

void DeviceLane::begin_batch() noexcept {
  for (auto& of_segment : stages_) {
    for (auto& stage : of_segment) stage->begin_batch();
  }
}

bool DeviceLane::start(const Batch& batch, std::size_t segment, std::span<std::uint8_t* const> frames) noexcept {
  assert(phase_ == Phase::idle && batch.size() <= shape_.batch_packets && batch.bytes().size() <= shape_.batch_bytes);
  segment_ = segment;
  crossed_ = {};
  phase_ = Phase::results;
  if (segment == 0) begin_batch();
  const bool sent = segment == 0 ? send_batch(batch) : send_changes(batch, frames);
  return sent && run_stages() && fetch_results();
}

/// The batch as it came: index, and frames or headers; then descriptors are made of them.
bool DeviceLane::send_batch(const Batch& batch) noexcept {
  count_ = static_cast<std::uint32_t>(batch.size());
  const std::uint8_t* const frames = batch.bytes().data();
  // Headers alone only where they are less than the frames.
  std::size_t header_bytes = 0;
  if (!segment().frames_up) {
    for (const PacketDescriptor& packet : batch.packets()) {
      header_bytes += aligned(std::min(packet.length, kHeaderBytes));
    }
  }
  whole_frames_ = segment().frames_up || header_bytes >= batch.bytes().size();

  std::uint32_t at = 0;
  IndexEntry* entry = index_.data();
  for (const PacketDescriptor& packet : batch.packets()) {
    *entry = {packet.offset, packet.length, packet.wire_length, packet.in_port, packet.link_type, 0};
    if (!whole_frames_ && !zero_copy()) {
      const std::uint32_t bytes = aligned(std::min(packet.length, kHeaderBytes));
      std::memcpy(headers_.data() + at, frames + packet.offset, bytes);
      entry->offset = at;
      at += bytes;
    }
    ++entry;
  }
  const bool has_room = placement_.head + placement_.tail > 0;
  Placement placement = placement_;
  const std::uint8_t* sent = frames;
  if (zero_copy()) {
    placement.kind = whole_frames_ ? Placement::Kind::slots : Placement::Kind::headers;
    crossed_.to_device += whole_frames_ ? batch.bytes().size() : header_bytes;
  } else {
    placement.kind = whole_frames_ && has_room ? Placement::Kind::slots : Placement::Kind::as_sent;
    const bool copied =
        whole_frames_ ? up(sent_.data(), frames, batch.bytes().size()) : up(sent_.data(), headers_.data(), at);
    if (!copied) return false;
    sent = sent_.data();
  }
  const bool in_slots = placement.kind != Placement::Kind::as_sent;
  // Read once, the index crosses without the copy engine, which is then free for the frames.
  const IndexEntry* index = index_.data();
  if (in_slots) {
    if (!up(device_index_.data(), index_.data(), count_ * sizeof(IndexEntry))) return false;
    index = device_index_.data();
  } else {
    crossed_.to_device += count_ * sizeof(IndexEntry);
  }
  view_.frames = in_slots ? slots_.data() : sent_.data();
  view_.packets = packets_.data();
  view_.count = count_;
  if (count_ == 0) return true;
  if (in_slots &&
      !launch(lay_in_slots, std::size_t{count_} * kCopyGroup, stream_, sent, index, view_.frames, placement, count_)) {
    return false;
  }
  if (!launch(describe, count_, stream_, index, view_.frames, view_.packets, placement, !whole_frames_,
              shape_.hash_flows, count_)) {
    return false;
  }
  return !segment().verdicts_up || send_changes(batch, {});
}

/// Verdicts, and the fields that the CPU changed.
bool DeviceLane::send_changes(const Batch& batch, std::span<std::uint8_t* const> frames) noexcept {
  if (count_ == 0) return true;
  auto* const verdicts = reinterpret_cast<Verdict*>(changes_.data());
  std::uint8_t* const records = changes_.data() + aligned8(count_ * kVerdictBytes);
  const RecordLayout& layout = segment().up;
  std::uint32_t i = 0;
  for (const PacketDescriptor& packet : batch.packets()) {
    verdicts[i] = packet.verdict;
    if (packet.verdict.alive() && !layout.empty()) {
      PacketDescriptor copy = packet;
      std::uint8_t* const frame =
          frames.empty() ? const_cast<std::uint8_t*>(batch.bytes().data()) + packet.offset : frames[i];
      gather(layout, {frame, &copy}, records + std::size_t{i} * layout.bytes);
    }
    ++i;
  }
  const std::size_t bytes = aligned8(count_ * kVerdictBytes) + std::size_t{count_} * layout.bytes;
  return up(device_changes_.data(), changes_.data(), bytes) &&
         launch(bring_up_to_date, count_, stream_, reinterpret_cast<const Verdict*>(device_changes_.data()),
                device_changes_.data() + aligned8(count_ * kVerdictBytes), layout, view_.frames, view_.packets, count_);
}

bool DeviceLane::run_stages() noexcept {
  std::size_t at = aligned8(count_ * kVerdictBytes);
  if (segment().lengths_down) at += aligned8(count_ * kLengthBytes);
  results_.findings.clear();  // its capacity stays
  for (std::size_t s = 0; s < stages_[segment_].size(); ++s) {
    const SegmentShape::Stage& stage = segment().stages[s];
    view_.function = stage.function;
    view_.findings = nullptr;
    results_.findings.push_back(nullptr);
    if (stage.findings_bytes > 0) {
      view_.findings = reinterpret_cast<std::byte*>(device_results_.data() + at);
      results_.findings.back() = reinterpret_cast<const std::byte*>(host_results_.data() + at);
      at += aligned8(std::size_t{count_} * stage.findings_bytes);
    }
    if (!stages_[segment_][s]->enqueue(view_, stream_)) return false;
    if (stage.changes_shape && count_ > 0 &&
        !launch(parse_again, count_, stream_, view_.frames, view_.packets, shape_.hash_flows, count_)) {
      return false;
    }
  }
  return true;
}

/// What is there for each packet of the batch, and with zero copy the rest too.
bool DeviceLane::fetch_results() noexcept {
  const SegmentShape& shape = segment();
  const std::size_t verdict_bytes = aligned8(count_ * kVerdictBytes);
  std::size_t bytes = verdict_bytes;
  auto* const verdicts = reinterpret_cast<Verdict*>(device_results_.data());
  std::uint32_t* lengths = nullptr;
  if (shape.lengths_down) {
    lengths = reinterpret_cast<std::uint32_t*>(device_results_.data() + bytes);
    results_.lengths = {reinterpret_cast<const std::uint32_t*>(host_results_.data() + bytes), count_};
    bytes += aligned8(count_ * kLengthBytes);
  } else {
    results_.lengths = {};
  }
  for (const SegmentShape::Stage& stage : shape.stages) bytes += aligned8(std::size_t{count_} * stage.findings_bytes);
  results_.verdicts = {reinterpret_cast<const Verdict*>(host_results_.data()), count_};
  if (count_ == 0) return done_.record(stream_);

  if (!launch(measure, count_, stream_, view_.packets, verdicts, lengths, sums_.data(), count_)) return false;
  if (shape.frames_down || !shape.down.empty()) {
    std::uint8_t* const to = zero_copy() ? host_packed_[segment_].data() : device_packed_.data();
    std::uint8_t* const records = shape.down.empty() ? nullptr : to;
    std::uint32_t* const places = shape.frames_down ? places_.data() : nullptr;
    if (!launch(pack_records, count_, stream_, view_.frames, view_.packets, sums_.data(), shape.down, records, places,
                count_)) {
      return false;
    }
    if (shape.frames_down &&
        !launch(pack_frames, std::size_t{count_} * kCopyGroup, stream_, view_.frames, view_.packets, places_.data(),
                to + aligned_frame(count_ * shape.down.bytes), count_)) {
      return false;
    }
  }
  // Small and without the copy engine, which is then free for the frames.
  crossed_.to_host += bytes;
  return launch(publish, bytes / sizeof(uint2), stream_, reinterpret_cast<const uint2*>(device_results_.data()),
                reinterpret_cast<uint2*>(host_results_.data()), bytes / sizeof(uint2)) &&
         done_.record(stream_);
}

gpu::Progress DeviceLane::progress() noexcept {
  if (phase_ == Phase::idle) return gpu::Progress::kDone;
  const gpu::Progress progress = done_.progress();
  if (progress != gpu::Progress::kDone) return progress;
  if (phase_ == Phase::results) {
    phase_ = Phase::packed;
    if (!fetch_packed()) return gpu::Progress::kFailed;
    if (phase_ == Phase::packed) return gpu::Progress::kRunning;
  }
  phase_ = Phase::idle;
  return gpu::Progress::kDone;
}

/// Only now is it known how much is still forwarded: that and nothing else crosses.
bool DeviceLane::fetch_packed() noexcept {
  const SegmentShape& shape = segment();
  results_.records = nullptr;
  results_.frames = nullptr;
  if (!shape.frames_down && shape.down.empty()) {
    phase_ = Phase::idle;
    return true;
  }
  std::size_t alive = 0;
  std::size_t frame_bytes = 0;
  for (std::uint32_t i = 0; i < count_; ++i) {
    if (!results_.verdicts[i].alive()) continue;
    ++alive;
    if (shape.frames_down) {
      frame_bytes += aligned_frame(results_.lengths.empty() ? index_[i].length : results_.lengths[i]);
    }
  }
  const std::size_t record_bytes = alive * shape.down.bytes;
  const std::size_t frames_at = aligned_frame(count_ * shape.down.bytes);
  if (!shape.down.empty()) results_.records = host_packed_[segment_].data();
  if (shape.frames_down) results_.frames = host_packed_[segment_].data() + frames_at;
  if (zero_copy()) {
    crossed_.to_host += record_bytes + frame_bytes;
    phase_ = Phase::idle;
    return true;
  }
  if (record_bytes + frame_bytes == 0) {
    phase_ = Phase::idle;
    return true;
  }
  return down(host_packed_[segment_].data(), device_packed_.data(), record_bytes) &&
         down(host_packed_[segment_].data() + frames_at, device_packed_.data() + frames_at, frame_bytes) &&
         done_.record(stream_);
}

void DeviceLane::abandon() noexcept {
  if (phase_ == Phase::idle) return;
  // Its result does not matter: after it, nothing of this stream runs any more.
  static_cast<void>(cudaStreamSynchronize(stream_.get()));
  static_cast<void>(cudaGetLastError());
  phase_ = Phase::idle;
}

}  // namespace

std::unique_ptr<Lane> make_device_lane(LaneShape shape,
                                       std::vector<std::vector<std::unique_ptr<gpu::GpuStage>>> stages) {
  return std::make_unique<DeviceLane>(std::move(shape), std::move(stages));
}

}  // namespace penstock::ring
