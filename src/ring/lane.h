// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// A lane holds what one batch in flight needs on a device, including the device copy of the ring's batch. A batch
// passes the lane in segments: consecutive functions with a stage on the device. Between segments, functions run on the
// CPU. The frames stay on the device from the first segment to the last; between segments, only the fields in the
// transfer plan are transferred.
//
//     host     frames, or their headers ──┐                            ┌─▶ verdicts, findings, then records or frames
//     up                                  ▼                            │   of the packets that are still forwarded
//     device   unpack: slots, descriptors, layouts ─▶ stages ─▶ pack ──┘
//
// The host's batch is not modified while a segment runs. So if the device fails, the batch can be processed on the CPU
// from the start of the segment.

#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "gpu/stream.h"
#include "packet/batch.h"
#include "packet/device_stage.h"
#include "packet/verdict.h"
#include "ring/record.h"

namespace penstock::ring {

class SpanLog;
struct LaneMemory;

/// How the bytes of a batch cross PCIe: by the copy engines, or by kernels that access host memory. `by_size`: each
/// batch by kernels if it has fewer bytes than kZeroCopyBytes.
enum class Crossing : std::uint8_t { copy, zero_copy, by_size };

/// Below this size, starting a copy engine takes longer than the time that kernels lose by waiting for PCIe.
inline constexpr std::size_t kZeroCopyBytes = std::size_t{256} << 10;

/// Below this size, launches are collected into a graph: the launch time on the host then delays the batch. Larger
/// batches are faster without it, since their copy starts earlier.
inline constexpr std::size_t kCollectBytes = std::size_t{2} << 20;
/// If several threads launch, batches below this size are not collected either. There are many of them, and a device
/// takes fewer graphs in a second from several threads than batches whose launches come one by one.
inline constexpr std::size_t kCollectFromOfSeveral = std::size_t{256} << 10;

/// How many bytes of a frame cross if only headers are read. Packets with headers beyond these are punted.
inline constexpr std::uint32_t kHeaderBytes = 96;

/// The number and size of the frames of a batch.
struct BatchSize {
  std::uint32_t packets;
  std::uint32_t frame_bytes;
};
/// One batch for each way in which a lane transfers batches, depending on their size. Running all of them loads
/// everything that a lane launches: frames and headers by kernels, frames and headers by the copy engines, and a batch
/// whose launches are not collected.
inline constexpr std::array kBatchOfEachWay{BatchSize{1, 60}, BatchSize{1, 1514}, BatchSize{4200, 60},
                                            BatchSize{2800, 700}, BatchSize{1400, 1514}};
static_assert(4200 * 64 > kZeroCopyBytes && 2800 * kHeaderBytes > kZeroCopyBytes && 2800 * 704 < kCollectBytes &&
              1400 * 1514 > kCollectBytes);

/// Bytes that cross for each packet in addition to frames and records.
inline constexpr std::uint32_t kIndexBytes = 16;  // up, if packets go up
// down after each segment; up before it if the CPU may have changed them
inline constexpr std::uint32_t kVerdictBytes = 4;
inline constexpr std::uint32_t kLengthBytes = 4;  // down, after each stage that changes lengths

struct SegmentShape {
  /// Whether packets go up: the index, and frames or headers, from which the device makes descriptors. True for the
  /// first segment, and for all segments if functions do not share packets on the device. Other segments use what the
  /// previous one left on the device.
  bool sends_packets = true;
  bool parses = true;        // if packets go up: parse them, instead of keeping the layouts of the previous segment
  bool frames_up = false;    // if packets go up: whole frames instead of headers
  bool verdicts_up = false;  // functions ran on the CPU before it; true for all segments but the first
  RecordLayout up;           // fields of each packet of the batch, if verdicts go up
  bool frames_down = false;  // whole frames of all packets that are still forwarded
  RecordLayout down;         // fields of these packets; if frames go down, only metadata
  struct Stage {
    std::uint8_t function = 0;         // position in the chain
    std::uint32_t findings_bytes = 0;  // per packet of the batch
    // changes the bounds of frames, so they are parsed again after it, and their lengths go down
    bool changes_shape = false;
    std::uint32_t state_bytes = 0;  // up, per packet of the batch: written by the function's state stage
  };
  std::vector<Stage> stages;
};

struct LaneShape {
  std::size_t batch_bytes = 0;
  std::size_t batch_packets = 0;
  FrameRoom room;           // of frames on the device
  bool hash_flows = false;  // a stage reads the flow hash
  Crossing crossing = Crossing::copy;
  std::vector<SegmentShape> segments;
  /// The most bytes from the first frame sent to the last, for segments that send frames again after they have grown;
  /// 0: batch_bytes.
  std::size_t sent_bytes = 0;
  std::size_t collects_from = 0;  // bytes; launches of batches from here on, below kCollectBytes, become graphs
};

/// The results of a segment. Valid until the next segment starts; the frames until the next batch starts.
struct SegmentResults {
  std::span<const Verdict> verdicts;          // of all packets; `nf` is the function that decided
  std::uint8_t* records = nullptr;            // contiguous, for the packets that are still forwarded, in order
  std::uint8_t* frames = nullptr;             // likewise, each aligned to kFrameAlignment
  std::vector<const std::byte*> findings;     // by stage of the segment; null if a stage has no findings
  std::vector<const std::uint32_t*> lengths;  // of all packets after each stage; null if a stage does not change them

  /// The lengths after the segment; null if it does not change them.
  [[nodiscard]] const std::uint32_t* last_lengths() const noexcept {
    const std::uint32_t* last = nullptr;
    for (const std::uint32_t* const changed : lengths) last = changed != nullptr ? changed : last;
    return last;
  }
};

/// The stages of a lane: for each segment, those of its shape.
using LaneStages = std::vector<std::vector<std::unique_ptr<DeviceStage>>>;

/// How many packets of a batch a lane takes pictures of, and the most bytes of each frame.
inline constexpr std::size_t kMostPictured = 32;
inline constexpr std::size_t kPictureBytes = 2048;

/// A packet as it is on the device at one moment; for traces. Borrows from the lane.
struct Picture {
  const PacketDescriptor* packet;       // without what only the host knows; its `offset` is one on the device
  std::span<const std::uint8_t> bytes;  // of the frame, from its start: what the device has of it
};

class Lane {
 public:
  virtual ~Lane() = default;

  /// Puts other stages, of the same shape and device, in the place of the lane's, which `stages` holds afterwards. Call
  /// it while no batch is in flight. Does not block.
  virtual void exchange_stages(LaneStages& stages) noexcept = 0;

  /// Where the host writes the states for a stage before it starts the segment: state_bytes for each packet of the
  /// batch. From then until the batch's next segment, the memory belongs to the segment. Null if the stage has no
  /// states.
  [[nodiscard]] virtual std::byte* states(std::size_t segment, std::size_t stage) noexcept {
    static_cast<void>(segment);
    static_cast<void>(stage);
    return nullptr;
  }
  /// Does what the host can do of the next `start`, which then takes less time. That `start` must follow with the same
  /// arguments, unless `prepare` is called again; the states need not be written yet. Call it while no segment is in
  /// flight.
  virtual void prepare(const Batch& batch, std::size_t segment, std::span<std::uint8_t* const> frames) noexcept {
    static_cast<void>(batch);
    static_cast<void>(segment);
    static_cast<void>(frames);
  }
  /// Enqueues a segment and does not block. Before the first segment of a batch, the stages switch to new tables. The
  /// batch must stay unchanged until the segment has ended, and its frames until the last segment has. Packets whose
  /// verdict is not `forward` are skipped. `frames` are the current positions of the packets' frames if some are
  /// outside the batch: those of forwarded packets must be in ascending order, and in pinned memory if packets go up.
  /// Empty if all are in the batch. False if the device refuses; it may then still be reading until `abandon` returns.
  [[nodiscard]] virtual bool start(const Batch& batch, std::size_t segment,
                                   std::span<std::uint8_t* const> frames) noexcept = 0;
  /// The progress of the segment. Also starts its next phase, so it must be polled.
  [[nodiscard]] virtual gpu::Progress progress() noexcept = 0;
  /// Valid after `kDone`.
  [[nodiscard]] virtual const SegmentResults& results() const noexcept = 0;
  /// Call it after a failure: blocks until the device no longer accesses the batch's memory, and notifies the stages.
  virtual void abandon() noexcept = 0;

  /// The segment that is started next also takes pictures of these packets of its batch, at most kMostPictured, before
  /// its first stage and after each.
  virtual void take_pictures(std::span<const std::uint32_t> packets) noexcept = 0;
  /// The picture of one of them, counted in their order, after so many stages of the segment. Valid as the results.
  [[nodiscard]] virtual Picture picture(std::size_t stages, std::size_t packet) const noexcept = 0;
  /// Fetches a packet of the batch as the segment, which is done, has left it. The length of its frame, of which `to`
  /// gets what the device has and where there is room; 0: the device has failed. Waits for the device.
  [[nodiscard]] virtual std::uint32_t fetch(std::size_t packet, PacketDescriptor& descriptor,
                                            std::span<std::uint8_t> to) noexcept = 0;

  /// How long the parts of a segment took on the device, waits for a copy engine or a multiprocessor included. Where
  /// kernels access host memory, its transfers are part of them.
  struct Times {
    std::chrono::nanoseconds to_device{};
    std::chrono::nanoseconds kernels{};
    std::chrono::nanoseconds to_host{};
  };
  /// The segment that is started next also takes its times, which costs some, unless the lane takes none.
  virtual void take_times() noexcept {}
  /// Of the last segment; valid after `kDone`. Empty if it has taken none.
  [[nodiscard]] virtual std::optional<Times> times() const noexcept { return std::nullopt; }

  /// A batch boundary while no batch is in flight: the stages switch to new tables.
  virtual void begin_batch() noexcept = 0;

  struct Crossed {
    std::uint64_t to_device = 0;
    std::uint64_t to_host = 0;
  };
  /// Bytes that have crossed since the last start.
  [[nodiscard]] virtual Crossed crossed() const noexcept = 0;
};

/// Makes a lane on the current GPU; throws CudaError. `stages` has the stages of each segment, as in its shape; all of
/// them are GpuStages. The frames of batches must be in pinned memory. If `log` is not null, the lane records there
/// when its transfers and kernels ran (timeline.h); otherwise it takes no times. If `memory` is not null, its results
/// go there (lane_memory.h), the lane can take times, and it wipes its memory on the device when it ends, before others
/// can have it.
[[nodiscard]] std::unique_ptr<Lane> make_device_lane(LaneShape shape, LaneStages stages, SpanLog* log = nullptr,
                                                     const LaneMemory* memory = nullptr);

}  // namespace penstock::ring
