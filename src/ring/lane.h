// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// A lane: what one batch in flight needs on a device, the ring's device twin of it among that. A batch runs over it in
// segments: runs of functions with a GPU stage, between which functions run on the CPU. The frames stay on the device
// from the first segment to the last; between them cross the fields that the transfer plan names.
//
//     host     frames, or their headers ──┐                            ┌─▶ verdicts, findings, then records or frames
//     up                                  ▼                            │   of the packets that are still forwarded
//     device   unpack: slots, descriptors, layouts ─▶ stages ─▶ pack ──┘
//
// Nothing of the host's batch is written while a segment runs, so that a batch whose device fails can be done on the
// CPU from where the segment began.

#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "gpu/stage.h"
#include "gpu/stream.h"
#include "packet/batch.h"
#include "packet/verdict.h"
#include "ring/record.h"

namespace penstock::ring {

class SpanLog;

/// How a batch's bytes cross PCIe: by the copy engines, or by kernels that read and write the host's memory. By size:
/// by kernels where they are fewer than kZeroCopyBytes, each batch for itself.
enum class Crossing : std::uint8_t { copy, zero_copy, by_size };

/// Below this, what it takes to set a copy engine going is more than what kernels lose by waiting for PCIe.
inline constexpr std::size_t kZeroCopyBytes = std::size_t{256} << 10;

/// Below this, launches are collected: what they cost the host is then what a batch waits for, and what threads that
/// launch at once wait for each other. With larger batches the copy begins sooner where they are not.
inline constexpr std::size_t kCollectBytes = std::size_t{2} << 20;

/// What of a frame crosses where only headers are read. A packet whose headers reach behind is punted.
inline constexpr std::uint32_t kHeaderBytes = 96;

/// Frames that make a batch.
struct BatchSize {
  std::uint32_t packets;
  std::uint32_t frame_bytes;
};
/// Batches of which each is taken over in another way, by its size: with one of each a lane has loaded all that it
/// launches. Whole frames and headers by kernels, the same by the copy engines, and what is not collected.
inline constexpr std::array kBatchOfEachWay{BatchSize{1, 60}, BatchSize{1, 1514}, BatchSize{4200, 60},
                                            BatchSize{2800, 700}, BatchSize{1400, 1514}};
static_assert(4200 * 64 > kZeroCopyBytes && 2800 * kHeaderBytes > kZeroCopyBytes && 2800 * 704 < kCollectBytes &&
              1400 * 1514 > kCollectBytes);

/// What crosses for each packet beside frames and records.
inline constexpr std::uint32_t kIndexBytes = 16;   // up, wherever packets go up
inline constexpr std::uint32_t kVerdictBytes = 4;  // down after each segment; up before it where the CPU had a say
inline constexpr std::uint32_t kLengthBytes = 4;   // down, behind each stage that changes lengths

struct SegmentShape {
  /// The batch goes up: index, and frames or headers, of which descriptors are made. Of the first segment, and of all
  /// where functions do not share packets on the device; the other segments find there what the one before left.
  bool sends_packets = true;
  bool parses = true;        // where packets go up: else their layouts are what the segment before it left
  bool frames_up = false;    // where packets go up: whole frames; else headers
  bool verdicts_up = false;  // functions ran on the CPU before it; true of all but the first
  RecordLayout up;           // of each packet of the batch, where verdicts go up
  bool frames_down = false;  // whole, of each packet that is still forwarded
  RecordLayout down;         // the same; not beside frames, but for metadata
  struct Stage {
    std::uint8_t function = 0;         // position in the chain
    std::uint32_t findings_bytes = 0;  // for each packet of the batch
    bool changes_shape = false;        // moves the bounds of frames: they are parsed again behind it, lengths go down
    std::uint32_t state_bytes = 0;     // up, for each packet of the batch: what the function's state stage writes
  };
  std::vector<Stage> stages;
};

struct LaneShape {
  std::size_t batch_bytes = 0;
  std::size_t batch_packets = 0;
  FrameRoom room;           // that frames have on the device
  bool hash_flows = false;  // a GPU stage reads the flow hash
  Crossing crossing = Crossing::copy;
  std::vector<SegmentShape> segments;
  /// The most from the first frame that is sent to the last, for segments that send again what has grown since; 0:
  /// batch_bytes.
  std::size_t sent_bytes = 0;
};

/// What came back from a segment; valid until the next one starts, and the frames until the next batch does.
struct SegmentResults {
  std::span<const Verdict> verdicts;          // of all packets; `nf` is the function that decided
  std::uint8_t* records = nullptr;            // one behind the other, of the packets still forwarded, in order
  std::uint8_t* frames = nullptr;             // the same, each at a multiple of kFrameAlignment
  std::vector<const std::byte*> findings;     // by stage of the segment; null where it finds nothing
  std::vector<const std::uint32_t*> lengths;  // of all packets behind that stage; null where it does not change them

  /// Those behind the segment; null where they are what they were before it.
  [[nodiscard]] const std::uint32_t* last_lengths() const noexcept {
    const std::uint32_t* last = nullptr;
    for (const std::uint32_t* const behind : lengths) last = behind != nullptr ? behind : last;
    return last;
  }
};

class Lane {
 public:
  virtual ~Lane() = default;

  /// Where the host writes the states of a segment's stage before it starts the segment: state_bytes for each packet of
  /// the batch. The memory is the segment's from then on, until the batch's next segment. Null if the stage has none.
  [[nodiscard]] virtual std::byte* states(std::size_t segment, std::size_t stage) noexcept {
    static_cast<void>(segment);
    static_cast<void>(stage);
    return nullptr;
  }
  /// Enqueues a segment and returns at once. The batch must stay as it is until the segment has ended, its frames
  /// until the last one has; before the first, the stages take up new tables. Packets whose verdict is not `forward`
  /// are not worked on. `frames`: where the packets' frames are by now, if not all are in the batch (those that are
  /// forwarded one behind the other, and in pinned memory where packets go up); empty: in the batch. False when the
  /// device refuses: it may still be reading, until `abandon` returns.
  [[nodiscard]] virtual bool start(const Batch& batch, std::size_t segment,
                                   std::span<std::uint8_t* const> frames) noexcept = 0;
  /// Also what takes the segment from one phase to the next: to be called again and again.
  [[nodiscard]] virtual gpu::Progress progress() noexcept = 0;
  /// After `kDone`.
  [[nodiscard]] virtual const SegmentResults& results() const noexcept = 0;
  /// After a failure: blocks until the device touches the batch's memory no more, and tells the stages.
  virtual void abandon() noexcept = 0;
  /// A batch boundary while no batch is in flight: the stages take up new tables.
  virtual void begin_batch() noexcept = 0;

  struct Crossed {
    std::uint64_t to_device = 0;
    std::uint64_t to_host = 0;
  };
  /// Bytes that crossed since the last start.
  [[nodiscard]] virtual Crossed crossed() const noexcept = 0;
};

/// On the current device; throws CudaError. `stages`: by segment, as many as its shape has. The frames of batches must
/// lie in pinned memory. `log`: where the lane tells when its transfers and kernels ran (timeline.h); null: it does
/// not, and takes no times.
[[nodiscard]] std::unique_ptr<Lane> make_device_lane(LaneShape shape,
                                                     std::vector<std::vector<std::unique_ptr<gpu::GpuStage>>> stages,
                                                     SpanLog* log = nullptr);

}  // namespace penstock::ring
