// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Records when the transfers and kernels of a run were executed on its GPUs, for viewing (trace_events.h), and to find
// out how much transfers delay each other (transfer_waits.h). Each stream of each worker keeps its last batches in
// preallocated memory. A run without a timeline has no overhead.
//
//   enqueued        ready                               end
//     host ───────▶ all earlier work of its stream is done ─▶ it is done too
//                   └── waits for the copy engine, crosses ┘
//
// A device reports when a stream reaches a transfer and when the transfer ends, but not when a copy engine starts it.

#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "gpu/device_clock.h"
#include "ring/lane.h"

namespace penstock::ring {

/// The kind of a stream's work. A kernel that does nothing but move bytes over PCIe is a transfer, like a copy.
enum class Work : std::uint8_t { to_device, kernels, to_host };
inline constexpr std::string_view kWorkNames[] = {"to device", "kernels", "to host"};

/// Consecutive work of one kind for a segment of a batch in one stream. Times are in nanoseconds of the host's clock
/// since the timeline was made.
struct Span {
  Work work = Work::kernels;
  std::uint32_t stream = 0;  // index in Timeline::streams
  std::uint32_t segment = 0;
  std::uint32_t packets = 0;
  std::uint64_t batch = 0;  // number of the batch in its stream
  Lane::Crossed crossed{};
  std::int64_t enqueued_ns = 0;  // when the host began to enqueue the work
  std::int64_t ready_ns = 0;     // when all earlier work of the stream was done
  std::int64_t end_ns = 0;
};

/// The last spans of one stream. Only one thread adds spans.
class SpanLog {
 public:
  using Clock = gpu::DeviceClock::Clock;

  /// Keeps the last `most` spans, at least one. `clock` is that of the stream's device; if it is null, `clock()` must
  /// not be called.
  SpanLog(std::uint32_t stream, std::size_t most, Clock::time_point epoch, const gpu::DeviceClock* clock)
      : stream_(stream), epoch_(epoch), clock_(clock), spans_(most) {}

  void add(Span span) noexcept {
    span.stream = stream_;
    spans_[added_++ % spans_.size()] = span;
  }
  void clear() noexcept { added_ = 0; }

  /// The spans that are kept, oldest first.
  [[nodiscard]] std::vector<Span> spans() const;
  /// The number of spans added, including those that are no longer kept.
  [[nodiscard]] std::uint64_t added() const noexcept { return added_; }
  [[nodiscard]] bool has_lost_some() const noexcept { return added_ > spans_.size(); }
  [[nodiscard]] Clock::time_point epoch() const noexcept { return epoch_; }
  [[nodiscard]] const gpu::DeviceClock& clock() const noexcept { return *clock_; }

 private:
  std::uint32_t stream_;
  Clock::time_point epoch_;
  const gpu::DeviceClock* clock_;
  std::vector<Span> spans_;  // circular
  std::size_t added_ = 0;
};

/// The timeline of a run. Owns the logs and the devices' clocks, and must outlive the lanes.
class Timeline {
 public:
  struct Stream {
    int device = 0;
    unsigned worker = 0;
    unsigned number = 0;  // number of the stream in its worker
  };

  /// `batches` is how many batches each stream keeps, at least one.
  explicit Timeline(std::size_t batches) : batches_(batches), epoch_(SpanLog::Clock::now()) {}

  /// The names of the segments' spans, by segment number.
  void name_segments(std::vector<std::string> names);
  /// The clock of `device`, which must be the current one. It is read at the first call. Throws CudaError.
  [[nodiscard]] const gpu::DeviceClock& clock_of(int device);
  /// Adds a log with room for the spans of `batches` batches. `clock` is the device's; null if nothing runs there.
  [[nodiscard]] SpanLog& add_stream(const Stream& stream, std::span<const SegmentShape> segments,
                                    const gpu::DeviceClock* clock);

  /// Discards all spans, after a warm-up. No stream may be adding spans.
  void begin() noexcept;

  // The recorded spans. Only valid once no stream adds spans any more.

  [[nodiscard]] std::span<const Stream> streams() const noexcept { return streams_; }
  [[nodiscard]] const std::vector<std::string>& segments() const noexcept { return segments_; }
  /// The spans of the period for which all streams have all spans, ordered by `ready_ns`.
  [[nodiscard]] std::vector<Span> spans() const;
  /// The number of spans before these.
  [[nodiscard]] std::uint64_t left_out(std::span<const Span> spans) const noexcept;

 private:
  const std::size_t batches_;
  const SpanLog::Clock::time_point epoch_;
  std::mutex mutex_;  // for set-up, in which several threads may take part
  std::vector<std::string> segments_;
  std::map<int, gpu::DeviceClock> clocks_;  // by device
  std::vector<Stream> streams_;
  std::deque<SpanLog> logs_;  // by stream
};

/// The most spans that a segment of this shape can have.
[[nodiscard]] std::size_t most_spans(const SegmentShape& segment) noexcept;

}  // namespace penstock::ring
