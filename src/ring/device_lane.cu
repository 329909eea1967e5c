// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include <cuda_runtime.h>

#include <algorithm>
#include <cassert>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <functional>
#include <optional>
#include <utility>

#include "gpu/collecting.h"
#include "gpu/cuda_error.h"
#include "gpu/launch_graph.h"
#include "gpu/memory.h"
#include "gpu/per_packet.cuh"
#include "ring/lane.h"
#include "ring/lane_kernels.cuh"
#include "ring/lane_memory.h"
#include "ring/lent_runs.h"
#include "ring/segment_times.h"
#include "ring/span_marks.h"
#include "ring/timeline.h"

namespace penstock::ring {
namespace {

using gpu::blocks_for;
using gpu::kThreadsPerBlock;
using gpu::launch_threads;
using kernels::IndexEntry;
using kernels::kCopyGroup;
using kernels::kHeaderGroup;
using kernels::kLentGroup;
using kernels::Placement;
using kernels::Sources;
using kernels::Sum;

constexpr std::size_t aligned8(std::size_t bytes) noexcept { return (bytes + 7) / 8 * 8; }

/// Pinned host memory: the lane's own, or memory that it was given.
template <typename T>
class HostPart {
 public:
  HostPart() = default;
  HostPart(std::size_t size, std::span<std::uint8_t> given) : memory_(reinterpret_cast<T*>(given.data())) {
    if (memory_ != nullptr || size == 0) return;
    own_ = gpu::PinnedBuffer<T>(size);
    memory_ = own_.data();
  }
  [[nodiscard]] T* data() noexcept { return memory_; }

 private:
  gpu::PinnedBuffer<T> own_;
  T* memory_ = nullptr;
};

class DeviceLane final : public Lane {
 public:
  DeviceLane(LaneShape shape, LaneStages stages, SpanLog* log, const LaneMemory* memory);
  DeviceLane(const DeviceLane&) = delete;
  DeviceLane& operator=(const DeviceLane&) = delete;
  ~DeviceLane() override;

  void exchange_stages(LaneStages& stages) noexcept override;

  std::byte* states(std::size_t segment, std::size_t stage) noexcept override;
  void prepare(const Batch& batch, std::size_t segment, std::span<std::uint8_t* const> frames) noexcept override;
  bool start(const Batch& batch, std::size_t segment, std::span<std::uint8_t* const> frames) noexcept override;
  gpu::Progress progress() noexcept override;
  const SegmentResults& results() const noexcept override { return results_; }
  void abandon() noexcept override;
  void take_pictures(std::span<const std::uint32_t> packets) noexcept override;
  Picture picture(std::size_t stages, std::size_t packet) const noexcept override;
  std::uint32_t fetch(std::size_t packet, PacketDescriptor& descriptor, std::span<std::uint8_t> to) noexcept override;
  void take_times() noexcept override { times_due_ = segment_times_.has_value(); }
  std::optional<Times> times() const noexcept override { return times_; }
  void begin_batch() noexcept override;
  Crossed crossed() const noexcept override { return crossed_; }

 private:
  using Clock = std::chrono::steady_clock;
  enum class Phase : std::uint8_t { idle, results, packed };

  struct Source {
    const std::uint8_t* first = nullptr;
    std::size_t bytes = 0;
  };
  /// How the packets of a batch are sent: what the host finds out when it writes the index.
  struct Sending {
    bool whole_frames = false;
    bool has_lent = false;                    // frames
    Crossing crossing = Crossing::zero_copy;  // never by_size
    std::size_t bytes = 0;                    // of frames or headers
    Source source;                            // of frames that are not lent
    Sources sources{};                        // of a batch with some that are
  };
  [[nodiscard]] static Source source_of(const Batch& batch, std::span<std::uint8_t* const> frames) noexcept;
  void index_packets(const Batch& batch, const SegmentShape& segment, std::span<std::uint8_t* const> frames) noexcept;
  void index_lent(const Batch& batch, const SegmentShape& segment, std::span<std::uint8_t* const> frames) noexcept;
  void write_changes(const Batch& batch, const RecordLayout& layout, std::span<std::uint8_t* const> frames) noexcept;
  void choose_crossing(const SegmentShape& segment, std::size_t header_bytes, std::size_t frame_bytes) noexcept;
  bool enqueue() noexcept;
  [[nodiscard]] gpu::LaunchGraph& graph() noexcept;
  bool send_packets() noexcept;
  bool send_lent() noexcept;
  [[nodiscard]] std::span<const LentRun> find_runs() noexcept;
  bool send_runs(std::span<const LentRun> runs) noexcept;
  bool gather_frames() noexcept;
  bool lay_out_sent() noexcept;
  bool lay_in_slots(const std::uint8_t* sent, const Placement& placement) noexcept;
  bool describe(const IndexEntry* index, const Placement& placement) noexcept;
  bool send_changes() noexcept;
  bool send_states() noexcept;
  bool run_stages() noexcept;
  bool enqueue_pictures(std::size_t stages) noexcept;
  /// How many bytes of a frame of this length are on the device.
  [[nodiscard]] std::uint32_t bytes_on_device(std::uint32_t length) const noexcept {
    return sending_.whole_frames ? length : std::min(length, kHeaderBytes);
  }
  bool fetch_results() noexcept;
  bool fetch_packed() noexcept;
  bool up(void* to, const void* from, std::size_t bytes) noexcept;
  bool down(void* to, const void* from, std::size_t bytes) noexcept;
  /// For the times: the kind of the work that is enqueued from here on.
  [[nodiscard]] bool begin(Work work) noexcept {
    return (!marks_ || marks_->begin(work, crossed_, stream_)) &&
           (!takes_times_ || segment_times_->begin(work, stream_));
  }
  [[nodiscard]] bool end() noexcept {
    return (!marks_ || marks_->end(crossed_, stream_)) && (!takes_times_ || segment_times_->end(stream_));
  }
  [[nodiscard]] bool collect_times() noexcept;
  [[nodiscard]] bool zero_copy() const noexcept { return sending_.crossing == Crossing::zero_copy; }
  [[nodiscard]] const SegmentShape& segment() const noexcept { return shape_.segments[segment_]; }

  LaneShape shape_;
  LaneStages stages_;
  Placement placement_;
  gpu::Stream stream_;
  gpu::Event done_;
  Clock::time_point asked_at_;            // when the driver was last asked about `done_`
  std::vector<gpu::LaunchGraph> graphs_;  // see graph()
  gpu::Collecting collecting_;
  std::size_t collects_from_;         // bytes; kCollectBytes: no batch, as when times are taken
  std::optional<SpanMarks<>> marks_;  // only with a timeline
  std::optional<SegmentTimes<>> segment_times_;
  bool times_due_ = false;    // of the next segment
  bool takes_times_ = false;  // of this segment
  std::optional<Times> times_;
  Phase phase_ = Phase::idle;
  std::size_t segment_ = 0;
  std::uint32_t count_ = 0;
  Sending sending_;            // of this batch
  Sending prepared_;           // of the segment that is started next, if it sends packets
  bool is_prepared_ = false;   // that segment
  bool lent_in_runs_ = false;  // the batch that was started, with frames that are lent
  Crossed crossed_;
  SegmentResults results_;
  ResultPlaces result_places_;

  // Up:
  gpu::PinnedBuffer<IndexEntry> index_;
  LentRuns lent_runs_;
  gpu::PinnedBuffer<std::uint32_t> lent_places_;
  gpu::DeviceBuffer<std::uint32_t> device_lent_places_;
  gpu::PinnedBuffer<std::uint8_t> headers_;  // gathered by the host
  gpu::PinnedBuffer<std::uint8_t> changes_;  // verdicts, followed by records
  gpu::DeviceBuffer<IndexEntry> device_index_;
  gpu::DeviceBuffer<std::uint8_t> device_changes_;
  gpu::DeviceBuffer<std::uint8_t> sent_;  // frames as transferred
  HostPart<std::byte> states_;            // see state_place
  gpu::DeviceBuffer<std::byte> device_states_;
  // On the device:
  gpu::DeviceBuffer<std::uint8_t> slots_;
  gpu::DeviceBuffer<PacketDescriptor> packets_;
  gpu::DevicePackets view_;
  // Down:
  gpu::DeviceBuffer<Sum> sums_;
  gpu::DeviceBuffer<std::uint32_t> places_;         // of frames in what goes down, in units of kFrameAlignment
  gpu::DeviceBuffer<std::uint8_t> device_results_;  // verdicts, lengths, findings
  HostPart<std::uint8_t> host_results_;
  gpu::DeviceBuffer<std::uint8_t> device_packed_;    // records or frames
  std::vector<HostPart<std::uint8_t>> host_packed_;  // by segment: frames stay valid during later segments
  const bool wipes_;                                 // its memory, when it ends
  gpu::PinnedBuffer<std::uint32_t> pictured_;        // packets, of the next or current segment
  std::uint32_t pictured_count_ = 0;
  bool pictures_due_ = false;                         // for the next segment
  gpu::PinnedBuffer<kernels::PictureSlot> pictures_;  // by stages that have run, and packet
};

/// The minimum time between two queries of a stream's progress. Polling without a pause would block other threads'
/// launches.
constexpr auto kAskInterval = std::chrono::microseconds{3};

/// Prefetch distance for descriptors while the index is written. They are no longer in the caches, since their batch
/// has waited.
constexpr std::size_t kFetchAhead = 16;

/// How far beyond a frame's headers parsing may read: as far as 16-bit offsets reach.
constexpr std::size_t kSlack = 0x10000 + 0x1000;

constexpr std::uint32_t aligned(std::uint32_t length) noexcept {
  return static_cast<std::uint32_t>(aligned_frame(length));
}

DeviceLane::DeviceLane(LaneShape shape, LaneStages stages, SpanLog* log, const LaneMemory* memory)
    : shape_(std::move(shape)),
      stages_(std::move(stages)),
      collects_from_(shape_.collects_from),
      lent_runs_(shape_.batch_bytes),
      wipes_(memory != nullptr) {
  const std::size_t packets = shape_.batch_packets;
  placement_.head = aligned(shape_.room.head);
  placement_.tail = aligned(shape_.room.tail);
  const LaneSizes sizes(shape_);
  const LaneMemory given = memory != nullptr ? *memory : LaneMemory{};
  const bool copies = shape_.crossing != Crossing::zero_copy;
  for (std::size_t segment = 0; segment < shape_.segments.size(); ++segment) {
    const std::size_t place = sizes.packed_places[segment];
    const std::size_t end = segment + 1 < sizes.packed_places.size() ? sizes.packed_places[segment + 1] : sizes.packed;
    host_packed_.emplace_back(end - place, given.packed.empty() ? given.packed : given.packed.subspan(place));
  }
  index_ = gpu::PinnedBuffer<IndexEntry>(packets);
  device_index_ = gpu::DeviceBuffer<IndexEntry>(packets);
  if (sizes.headers_up && copies) headers_ = gpu::PinnedBuffer<std::uint8_t>(packets * kHeaderBytes);
  if (sizes.changes > 0) {
    changes_ = gpu::PinnedBuffer<std::uint8_t>(sizes.changes);
    device_changes_ = gpu::DeviceBuffer<std::uint8_t>(sizes.changes);
  }
  if (sizes.states > 0) {
    states_ = HostPart<std::byte>(sizes.states, given.states);
    std::memset(states_.data(), 0, sizes.states);  // the frames of the warm-up have no states
    device_states_ = gpu::DeviceBuffer<std::byte>(sizes.states);
  }
  if (copies) sent_ = gpu::DeviceBuffer<std::uint8_t>(sizes.sent + kSlack);
  slots_ =
      gpu::DeviceBuffer<std::uint8_t>(std::max(sizes.sent + sizes.room, packets * kernels::kLentHeaderSlot) + kSlack);
  lent_places_ = gpu::PinnedBuffer<std::uint32_t>(packets);
  device_lent_places_ = gpu::DeviceBuffer<std::uint32_t>(packets);
  packets_ = gpu::DeviceBuffer<PacketDescriptor>(packets);
  graphs_.resize(shape_.segments.size() * 8);
  sums_ = gpu::DeviceBuffer<Sum>(blocks_for(packets));
  places_ = gpu::DeviceBuffer<std::uint32_t>(packets);
  device_results_ = gpu::DeviceBuffer<std::uint8_t>(sizes.results);
  host_results_ = HostPart<std::uint8_t>(sizes.results, given.results);
  if (copies) device_packed_ = gpu::DeviceBuffer<std::uint8_t>(sizes.packed_most);
  pictured_ = gpu::PinnedBuffer<std::uint32_t>(kMostPictured);
  std::size_t most_stages = 0;
  for (const SegmentShape& segment : shape_.segments) most_stages = std::max(most_stages, segment.stages.size());
  pictures_ = gpu::PinnedBuffer<kernels::PictureSlot>((most_stages + 1) * kMostPictured);
  // Zeroed once, because some bytes are read without having been written, and then ignored: the slack, the padding
  // between results and frames, and the findings of packets that no stage has processed.
  for (gpu::DeviceBuffer<std::uint8_t>* const buffer : {&sent_, &slots_, &device_results_, &device_packed_}) {
    if (buffer->size() > 0 && !gpu::zero_async(buffer->data(), buffer->size(), stream_))
      throw gpu::CudaError(0, "cannot zero the memory of a lane on the GPU");
  }
  stream_.wait();
  if (memory != nullptr) segment_times_.emplace();
  if (log == nullptr) return;
  collects_from_ = kCollectBytes;  // a graph is a single piece of work: there are no times of its parts
  marks_.emplace(*log, log->clock().event(), log->clock().time());
}

DeviceLane::~DeviceLane() {
  abandon();
  if (!wipes_) return;
  const auto wipe = [](auto& buffer) {
    if (buffer.size() > 0) gpu::wipe(buffer.data(), buffer.size_bytes());
  };
  for (gpu::DeviceBuffer<std::uint8_t>* const buffer :
       {&sent_, &slots_, &device_changes_, &device_results_, &device_packed_})
    wipe(*buffer);
  wipe(device_states_);
  wipe(packets_);
  wipe(device_index_);
  // Its own pinned memory goes to lanes of others, too.
  const auto clear = [](auto& buffer) {
    if (buffer.size() > 0) std::memset(static_cast<void*>(buffer.data()), 0, buffer.size_bytes());
  };
  clear(index_);
  clear(headers_);
  clear(changes_);
  clear(lent_places_);
  clear(pictured_);
  clear(pictures_);
}

bool DeviceLane::up(void* to, const void* from, std::size_t bytes) noexcept {
  if (bytes > 0 && !begin(Work::to_device)) return false;
  crossed_.to_device += bytes;
  return bytes == 0 || gpu::copy_async(to, from, bytes, stream_);
}

bool DeviceLane::down(void* to, const void* from, std::size_t bytes) noexcept {
  if (bytes > 0 && !begin(Work::to_host)) return false;
  crossed_.to_host += bytes;
  return bytes == 0 || gpu::copy_async(to, from, bytes, stream_);
}

void DeviceLane::begin_batch() noexcept {
  for (auto& of_segment : stages_) {
    for (auto& stage : of_segment) stage->begin_batch();
  }
}

void DeviceLane::exchange_stages(LaneStages& stages) noexcept {
  assert(phase_ == Phase::idle);
  stages_.swap(stages);
}

std::byte* DeviceLane::states(std::size_t segment, std::size_t stage) noexcept {
  const SegmentShape& shape = shape_.segments[segment];
  if (shape.stages[stage].state_bytes == 0) return nullptr;
  return states_.data() + state_place(shape, stage, shape_.batch_packets);
}

/// Later segments of a batch cross as its first one does.
void DeviceLane::prepare(const Batch& batch, std::size_t segment, std::span<std::uint8_t* const> frames) noexcept {
  assert(phase_ == Phase::idle && batch.size() <= shape_.batch_packets && batch.bytes().size() <= shape_.batch_bytes);
  const SegmentShape& shape = shape_.segments[segment];
  prepared_ = {};
  prepared_.has_lent = batch.lent() > 0;
  prepared_.crossing = sending_.crossing;
  if (shape.sends_packets) prepared_.has_lent ? index_lent(batch, shape, frames) : index_packets(batch, shape, frames);
  if (shape.verdicts_up) write_changes(batch, shape.up, frames);
  is_prepared_ = true;
}

bool DeviceLane::start(const Batch& batch, std::size_t segment, std::span<std::uint8_t* const> frames) noexcept {
  if (!is_prepared_) prepare(batch, segment, frames);
  is_prepared_ = false;
  segment_ = segment;
  count_ = static_cast<std::uint32_t>(batch.size());
  if (this->segment().sends_packets) sending_ = prepared_;
  phase_ = Phase::results;
  if (segment == 0) begin_batch();
  if (marks_) marks_->begin_segment(segment, batch.size());
  takes_times_ = std::exchange(times_due_, false);
  times_.reset();
  if (takes_times_) segment_times_->begin_segment();
  if (!std::exchange(pictures_due_, false)) pictured_count_ = 0;
  // A graph always has the same launches.
  const std::size_t bytes = batch.bytes().size();
  lent_in_runs_ = bytes >= kCollectBytes;
  if (!takes_times_ && pictured_count_ == 0 && !batch.empty() && bytes >= collects_from_ && bytes < kCollectBytes &&
      collecting_.try_next()) {
    if (gpu::collect_launches(stream_)) {
      if (!enqueue()) {
        // Collecting may be the cause, so the next batches are not collected.
        collecting_.refused();
        gpu::drop_collected(stream_);
        return false;
      }
      if (graph().launch(stream_)) {
        collecting_.launched();
        return done_.record(stream_);
      }
    }
    collecting_.refused();  // nothing was launched
  }
  return enqueue() && end() && done_.record(stream_);
}

bool DeviceLane::enqueue() noexcept {
  crossed_ = {};
  // States first: after the packets' kernels their copy would wait in the queue of the copy engine, and hold up copies
  // of other streams.
  return send_states() && (!segment().sends_packets || (sending_.has_lent ? send_lent() : send_packets())) &&
         (!segment().verdicts_up || send_changes()) && run_stages() && fetch_results();
}

/// The graph for the kernels and copies of this batch, which are always the same in the same order.
gpu::LaunchGraph& DeviceLane::graph() noexcept {
  return graphs_[segment_ * 8 + (sending_.has_lent ? 4 : 0) + (sending_.whole_frames ? 2 : 0) + (zero_copy() ? 1 : 0)];
}

/// The memory from the first frame to the last. It starts at an aligned address, so that frames that a CPU twin has
/// moved have the same alignment on the device.
DeviceLane::Source DeviceLane::source_of(const Batch& batch, std::span<std::uint8_t* const> frames) noexcept {
  if (frames.empty()) return {batch.bytes().data(), batch.bytes().size()};
  Source source;
  std::size_t i = 0;
  for (const PacketDescriptor& packet : batch.packets()) {
    const std::uint8_t* const frame = frames[i++];
    if (!packet.verdict.alive()) continue;  // its frame may be elsewhere
    if (source.first == nullptr) source.first = frame - reinterpret_cast<std::uintptr_t>(frame) % kFrameAlignment;
    source.bytes = static_cast<std::size_t>(frame - source.first) + aligned_frame(packet.length);
  }
  return source;
}

/// For a frame that a CPU twin has moved: in its memory, or to memory of its own. Frames come in ascending order.
void place_moved(IndexEntry& entry, const std::uint8_t* frame, Sources& sources, std::size_t region_bytes) noexcept {
  const std::uint8_t* const home = sources.memory[entry.source];
  const std::less<const std::uint8_t*> lies_before;
  if (lies_before(frame, home) || !lies_before(frame, home + region_bytes)) {
    const std::uint8_t*& moved = sources.memory[Sources::kMoved];
    if (moved == nullptr) moved = frame - reinterpret_cast<std::uintptr_t>(frame) % kFrameAlignment;
    entry.source = Sources::kMoved;
  }
  entry.offset = static_cast<std::uint32_t>(frame - sources.memory[entry.source]);
}

/// Writes the index, and gathers headers if these cross by the copy engines.
void DeviceLane::index_packets(const Batch& batch, const SegmentShape& segment,
                               std::span<std::uint8_t* const> frames) noexcept {
  const Source source = source_of(batch, frames);
  const auto is_sent = [&](const PacketDescriptor& packet) { return frames.empty() || packet.verdict.alive(); };
  // Send only headers if they have fewer bytes than the frames.
  std::size_t header_bytes = 0;
  if (!segment.frames_up) {
    for (const PacketDescriptor& packet : batch.packets()) {
      if (is_sent(packet)) header_bytes += aligned(std::min(packet.length, kHeaderBytes));
    }
  }
  choose_crossing(segment, header_bytes, source.bytes);
  prepared_.source = source;
  const bool gathers = !prepared_.whole_frames && prepared_.crossing != Crossing::zero_copy;
  std::uint32_t at = 0;
  std::size_t i = 0;
  for (const PacketDescriptor& packet : batch.packets()) {
    if (i + kFetchAhead < batch.size()) __builtin_prefetch(&packet + kFetchAhead);
    IndexEntry& entry = index_.data()[i];
    entry = {packet.offset, packet.length, packet.wire_length, packet.in_port, packet.link_type, 0};
    if (!is_sent(packet)) {
      entry.offset = entry.length = 0;
    } else if (!frames.empty()) {
      entry.offset = static_cast<std::uint32_t>(frames[i] - source.first);
    }
    if (gathers) {
      const std::uint32_t bytes = aligned(std::min(entry.length, kHeaderBytes));
      std::memcpy(headers_.data() + at, source.first + entry.offset, bytes);
      entry.offset = at;
      at += bytes;
    }
    ++i;
  }
}

/// Sends the index, and frames or headers, and makes descriptors from them.
bool DeviceLane::send_packets() noexcept {
  const std::uint8_t* const first = sending_.source.first;
  if (zero_copy()) {
    Placement placement = placement_;
    placement.kind = sending_.whole_frames ? Placement::Kind::slots : Placement::Kind::headers;
    crossed_.to_device += sending_.bytes;
    return lay_in_slots(first, placement);
  }
  return up(sent_.data(), sending_.whole_frames ? first : headers_.data(), sending_.bytes) && lay_out_sent();
}

/// Frames or headers are in `sent_`: makes room for them if stages need it, and describes them.
bool DeviceLane::lay_out_sent() noexcept {
  Placement placement = placement_;
  if (sending_.whole_frames && placement_.head + placement_.tail > 0) {
    placement.kind = Placement::Kind::slots;
    return lay_in_slots(sent_.data(), placement);
  }
  if (!begin(Work::kernels)) return false;
  // The index is read only once, so the kernel reads it over PCIe, and the copy engine stays free for the frames.
  crossed_.to_device += count_ * sizeof(IndexEntry);
  placement.kind = Placement::Kind::as_sent;
  view_.frames = sent_.data();
  return describe(index_.data(), placement);
}

bool DeviceLane::lay_in_slots(const std::uint8_t* sent, const Placement& placement) noexcept {
  if (!up(device_index_.data(), index_.data(), count_ * sizeof(IndexEntry))) return false;
  if (!begin(zero_copy() ? Work::to_device : Work::kernels)) return false;
  view_.frames = slots_.data();
  return (count_ == 0 || launch_threads(kernels::lay_in_slots, std::size_t{count_} * kCopyGroup, stream_, sent,
                                        device_index_.data(), view_.frames, placement, count_)) &&
         begin(Work::kernels) && describe(device_index_.data(), placement);
}

/// Whether whole frames cross, and by what.
void DeviceLane::choose_crossing(const SegmentShape& segment, std::size_t header_bytes,
                                 std::size_t frame_bytes) noexcept {
  prepared_.whole_frames = segment.frames_up || header_bytes >= frame_bytes;
  prepared_.bytes = prepared_.whole_frames ? frame_bytes : header_bytes;
  if (&segment != shape_.segments.data()) return;
  prepared_.crossing = shape_.crossing != Crossing::by_size ? shape_.crossing
                       : prepared_.bytes < kZeroCopyBytes   ? Crossing::zero_copy
                                                            : Crossing::copy;
}

bool DeviceLane::describe(const IndexEntry* index, const Placement& placement) noexcept {
  view_.packets = packets_.data();
  view_.count = count_;
  return count_ == 0 || launch_threads(kernels::describe, count_, stream_, index, view_.frames, view_.packets,
                                       placement, !sending_.whole_frames, segment().parses, shape_.hash_flows, count_);
}

/// Like `index_packets`, for a batch with frames that are lent, which cross from where they are in host memory. The
/// host does not touch them.
void DeviceLane::index_lent(const Batch& batch, const SegmentShape& segment,
                            std::span<std::uint8_t* const> frames) noexcept {
  const PacketMemory& memory = *batch.lent_memory();
  Sources& sources = prepared_.sources;
  for (std::size_t r = 0; r < memory.regions(); ++r)
    sources.memory[r] = batch.memory_of(static_cast<PacketMemory::Region>(r));
  std::size_t header_bytes = 0;
  std::size_t frame_bytes = 0;
  std::size_t i = 0;
  for (const PacketDescriptor& packet : batch.packets()) {
    if (i + kFetchAhead < batch.size()) __builtin_prefetch(&packet + kFetchAhead);
    IndexEntry& entry = index_.data()[i];
    entry = {packet.offset, packet.length, packet.wire_length, packet.in_port, packet.link_type, packet.region};
    if (!frames.empty()) {
      if (!packet.verdict.alive()) {
        entry.offset = entry.length = 0;  // its frame may be elsewhere
      } else if (frames[i] != batch.frame(packet)) {
        const bool in_batch = packet.region == PacketMemory::kBatch;
        place_moved(entry, frames[i], sources, in_batch ? batch.bytes().size() : memory.memory(packet.region).size());
      }
    }
    header_bytes += aligned(std::min(entry.length, kHeaderBytes));
    frame_bytes += aligned(entry.length);
    ++i;
  }
  choose_crossing(segment, header_bytes, frame_bytes);
}

/// Few launches are collected with copies, whose number differs.
bool DeviceLane::send_lent() noexcept {
  if (lent_in_runs_ && sending_.whole_frames && !zero_copy()) {
    if (const std::span<const LentRun> runs = find_runs(); !runs.empty()) return send_runs(runs);
  }
  return gather_frames();
}

std::span<const LentRun> DeviceLane::find_runs() noexcept {
  lent_runs_.begin();
  for (std::uint32_t i = 0; i < count_; ++i) {
    const IndexEntry& entry = index_.data()[i];
    lent_runs_.add(entry.source, entry.offset, entry.length);
  }
  return lent_runs_.end();
}

/// By copy engines.
bool DeviceLane::send_runs(std::span<const LentRun> runs) noexcept {
  std::size_t at = 0;
  std::uint32_t i = 0;
  if (!begin(Work::to_device)) return false;
  for (const LentRun& run : runs) {
    for (std::uint32_t n = 0; n < run.packets; ++n, ++i) {
      IndexEntry& entry = index_.data()[i];
      entry.offset = static_cast<std::uint32_t>(at) + run.place(n, entry.offset);
    }
    if (!gpu::copy_rows_async(sent_.data() + at, sending_.sources.memory[run.source] + run.first, run.rows, run.width,
                              run.stride, stream_)) {
      return false;
    }
    at += run.bytes();
  }
  crossed_.to_device += at;
  return lay_out_sent();
}

/// By a kernel that reads host memory.
bool DeviceLane::gather_frames() noexcept {
  Placement placement;
  placement.kind = sending_.whole_frames ? Placement::Kind::lent : Placement::Kind::lent_headers;
  if (sending_.whole_frames) {
    std::uint32_t place = 0;
    for (std::uint32_t i = 0; i < count_; ++i) {
      const IndexEntry& entry = index_.data()[i];
      place += placement_.head;
      lent_places_.data()[i] = place;
      place += aligned(kernels::misalignment(entry.offset) + entry.length) + placement_.tail;
    }
    placement.places = device_lent_places_.data();
    if (!up(device_lent_places_.data(), lent_places_.data(), count_ * sizeof(std::uint32_t))) return false;
  }
  if (!up(device_index_.data(), index_.data(), count_ * sizeof(IndexEntry)) || !begin(Work::to_device)) return false;
  crossed_.to_device += sending_.bytes;
  view_.frames = slots_.data();
  const IndexEntry* const index = device_index_.data();
  const auto by = [&](auto kernel, unsigned group) {
    return count_ == 0 || launch_threads(kernel, std::size_t{count_} * group, stream_, sending_.sources, index,
                                         view_.frames, placement, count_);
  };
  return (sending_.whole_frames ? by(kernels::gather_lent<kLentGroup>, kLentGroup)
                                : by(kernels::gather_lent<kHeaderGroup>, kHeaderGroup)) &&
         begin(Work::kernels) && describe(index, placement);
}

/// Verdicts, and the fields that the CPU changed.
void DeviceLane::write_changes(const Batch& batch, const RecordLayout& layout,
                               std::span<std::uint8_t* const> frames) noexcept {
  auto* const verdicts = reinterpret_cast<Verdict*>(changes_.data());
  std::uint8_t* const records = changes_.data() + aligned8(batch.size() * kVerdictBytes);
  std::size_t i = 0;
  for (const PacketDescriptor& packet : batch.packets()) {
    verdicts[i] = packet.verdict;
    if (packet.verdict.alive() && !layout.empty()) {
      PacketDescriptor copy = packet;
      std::uint8_t* const frame = frames.empty() ? batch.frame(packet) : frames[i];
      gather(layout, {frame, &copy}, records + i * layout.bytes);
    }
    ++i;
  }
}

bool DeviceLane::send_changes() noexcept {
  if (count_ == 0) return true;
  const RecordLayout& layout = segment().up;
  const std::size_t records_at = aligned8(count_ * kVerdictBytes);
  return up(device_changes_.data(), changes_.data(), records_at + std::size_t{count_} * layout.bytes) &&
         begin(Work::kernels) &&
         launch_threads(kernels::bring_up_to_date, count_, stream_,
                        reinterpret_cast<const Verdict*>(device_changes_.data()), device_changes_.data() + records_at,
                        layout, view_.frames, view_.packets, count_);
}

/// Sends the per-flow state of each stage that takes any.
bool DeviceLane::send_states() noexcept {
  for (std::size_t s = 0; s < segment().stages.size(); ++s) {
    const std::size_t place = state_place(segment(), s, shape_.batch_packets);
    const std::size_t bytes = std::size_t{count_} * segment().stages[s].state_bytes;
    if (!up(device_states_.data() + place, states_.data() + place, bytes)) return false;
  }
  return true;
}

bool DeviceLane::run_stages() noexcept {
  if (!begin(Work::kernels)) return false;
  result_places_.lay_out(segment(), count_);
  results_.findings.clear();  // keeps the capacity
  results_.lengths.clear();
  if (!enqueue_pictures(0)) return false;
  for (std::size_t s = 0; s < stages_[segment_].size(); ++s) {
    const SegmentShape::Stage& stage = segment().stages[s];
    view_.function = stage.function;
    view_.findings = nullptr;
    view_.states = nullptr;
    if (stage.state_bytes > 0) view_.states = device_states_.data() + state_place(segment(), s, shape_.batch_packets);
    results_.findings.push_back(nullptr);
    if (stage.findings_bytes > 0) {
      const std::size_t at = result_places_.findings[s];
      view_.findings = reinterpret_cast<std::byte*>(device_results_.data() + at);
      results_.findings.back() = reinterpret_cast<const std::byte*>(host_results_.data() + at);
    }
    if (!static_cast<gpu::GpuStage&>(*stages_[segment_][s]).enqueue(view_, stream_)) return false;
    results_.lengths.push_back(nullptr);
    if (stage.changes_shape) {
      const std::size_t at = result_places_.lengths[s];
      results_.lengths.back() = reinterpret_cast<const std::uint32_t*>(host_results_.data() + at);
      if (count_ > 0 &&
          !launch_threads(kernels::parse_again, count_, stream_, view_.frames, view_.packets,
                          reinterpret_cast<std::uint32_t*>(device_results_.data() + at), shape_.hash_flows, count_)) {
        return false;
      }
    }
    if (!enqueue_pictures(s + 1)) return false;
  }
  return true;
}

void DeviceLane::take_pictures(std::span<const std::uint32_t> packets) noexcept {
  pictured_count_ = static_cast<std::uint32_t>(std::min(packets.size(), kMostPictured));
  std::copy_n(packets.begin(), pictured_count_, pictured_.data());
  pictures_due_ = true;
}

bool DeviceLane::enqueue_pictures(std::size_t stages) noexcept {
  if (pictured_count_ == 0) return true;
  return launch_threads(kernels::take_pictures, std::size_t{pictured_count_} * kernels::kPictureGroup, stream_,
                        view_.frames, view_.packets, pictured_.data(),
                        bytes_on_device(static_cast<std::uint32_t>(kPictureBytes)),
                        pictures_.data() + stages * kMostPictured, pictured_count_);
}

Picture DeviceLane::picture(std::size_t stages, std::size_t packet) const noexcept {
  const kernels::PictureSlot& slot = pictures_.data()[stages * kMostPictured + packet];
  const std::size_t bytes = std::min<std::size_t>(bytes_on_device(slot.packet.length), kPictureBytes);
  return {&slot.packet, {slot.bytes, bytes}};
}

std::uint32_t DeviceLane::fetch(std::size_t packet, PacketDescriptor& descriptor, std::span<std::uint8_t> to) noexcept {
  const auto copy = [&](void* host, const void* device, std::size_t bytes) {
    return gpu::copy_async(host, device, bytes, stream_) && cudaStreamSynchronize(stream_.get()) == cudaSuccess;
  };
  if (!copy(&descriptor, view_.packets + packet, sizeof descriptor)) return 0;
  const std::size_t bytes = std::min<std::size_t>(bytes_on_device(descriptor.length), to.size());
  return bytes == 0 || copy(to.data(), view_.frames + descriptor.offset, bytes) ? descriptor.length : 0;
}

/// Fetches the results that all packets have and, with zero copy, the records and frames too.
bool DeviceLane::fetch_results() noexcept {
  const SegmentShape& shape = segment();

  auto* const verdicts = reinterpret_cast<Verdict*>(device_results_.data());
  results_.verdicts = {reinterpret_cast<const Verdict*>(host_results_.data()), count_};
  if (count_ == 0) return true;

  if (!launch_threads(kernels::measure, count_, stream_, view_.packets, verdicts, sums_.data(), count_)) return false;
  if (shape.frames_down || !shape.down.empty()) {
    if (zero_copy() && !begin(Work::to_host)) return false;
    std::uint8_t* const to = zero_copy() ? host_packed_[segment_].data() : device_packed_.data();
    std::uint8_t* const records = shape.down.empty() ? nullptr : to;
    std::uint32_t* const places = shape.frames_down ? places_.data() : nullptr;
    if (!launch_threads(kernels::pack_records, count_, stream_, view_.frames, view_.packets, sums_.data(), shape.down,
                        records, places, count_)) {
      return false;
    }
    if (shape.frames_down &&
        !launch_threads(kernels::pack_frames, std::size_t{count_} * kCopyGroup, stream_, view_.frames, view_.packets,
                        places_.data(), to + aligned_frame(count_ * shape.down.bytes), count_)) {
      return false;
    }
  }
  // The results are small. A kernel writes them, so that the copy engine stays free for the frames.
  const std::size_t words = result_places_.bytes / sizeof(uint2);
  if (!begin(Work::to_host)) return false;
  crossed_.to_host += result_places_.bytes;
  return launch_threads(kernels::publish, words, stream_, reinterpret_cast<const uint2*>(device_results_.data()),
                        reinterpret_cast<uint2*>(host_results_.data()), words);
}

gpu::Progress DeviceLane::progress() noexcept {
  if (phase_ == Phase::idle) return gpu::Progress::kDone;
  const Clock::time_point now = Clock::now();
  if (now - asked_at_ < kAskInterval) return gpu::Progress::kRunning;
  asked_at_ = now;
  const gpu::Progress progress = done_.progress();
  if (progress != gpu::Progress::kDone) return progress;
  if (phase_ == Phase::results) {
    phase_ = Phase::packed;
    if (!fetch_packed()) return gpu::Progress::kFailed;
    if (phase_ == Phase::packed) return gpu::Progress::kRunning;
  }
  if (!collect_times()) {
    phase_ = Phase::packed;  // so that the lane is abandoned
    return gpu::Progress::kFailed;
  }
  phase_ = Phase::idle;
  return gpu::Progress::kDone;
}

bool DeviceLane::collect_times() noexcept {
  if (marks_ && !marks_->collect(crossed_)) return false;
  if (!takes_times_) return true;
  times_ = segment_times_->add_up();
  return times_.has_value();
}

/// Only now is the number of packets that are still forwarded known; no other packets' records and frames cross.
bool DeviceLane::fetch_packed() noexcept {
  const SegmentShape& shape = segment();
  results_.records = nullptr;
  results_.frames = nullptr;
  const std::uint32_t* const lengths = results_.last_lengths();
  // The frames stay on the device in their current shape, also for later segments.
  if (lengths != nullptr && segment_ + 1 < shape_.segments.size()) {
    for (std::uint32_t i = 0; i < count_; ++i) index_[i].length = lengths[i];
  }
  if (!shape.frames_down && shape.down.empty()) {
    phase_ = Phase::idle;
    return true;
  }
  std::size_t alive = 0;
  std::size_t frame_bytes = 0;
  for (std::uint32_t i = 0; i < count_; ++i) alive += results_.verdicts[i].alive() ? 1 : 0;
  if (shape.frames_down) {
    for (std::uint32_t i = 0; i < count_; ++i) {
      const std::uint32_t length = lengths != nullptr ? lengths[i] : index_[i].length;
      frame_bytes += results_.verdicts[i].alive() ? aligned(length) : 0;
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
         down(host_packed_[segment_].data() + frames_at, device_packed_.data() + frames_at, frame_bytes) && end() &&
         done_.record(stream_);
}

void DeviceLane::abandon() noexcept {
  if (phase_ == Phase::idle) return;
  // Only waits until no work of this stream runs any more. The status does not matter.
  static_cast<void>(cudaStreamSynchronize(stream_.get()));
  static_cast<void>(cudaGetLastError());
  phase_ = Phase::idle;
  for (auto& stage : stages_[segment_]) stage->abandoned();
}

}  // namespace

std::unique_ptr<Lane> make_device_lane(LaneShape shape, LaneStages stages, SpanLog* log, const LaneMemory* memory) {
  return std::make_unique<DeviceLane>(std::move(shape), std::move(stages), log, memory);
}

}  // namespace penstock::ring
