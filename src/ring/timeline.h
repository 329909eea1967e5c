// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// When a run's transfers and kernels ran on its GPUs: for a look at it (trace_events.h), and for how much transfers are
// in each other's way (transfer_waits.h). Each stream of each worker keeps its last batches in memory of its own, which
// is taken beforehand; a run without a timeline pays nothing.
//
//   enqueued        ready                               end
//     host ───────▶ all before it in its stream is done ─▶ it is done too
//                   └── waits for the copy engine, crosses ┘
//
// A device tells when a stream has come to a transfer and when that has ended, not when a copy engine took it up.

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

/// What a stream does. Kernels read and write the host's memory too: what crosses by them is theirs.
enum class Work : std::uint8_t { to_device, kernels, to_host };
inline constexpr std::string_view kWorkNames[] = {"to device", "kernels", "to host"};

/// What a stream did of one kind, one behind the other, for a segment of a batch. Times are of the host's clock, in
/// nanoseconds since the timeline was made.
struct Span {
  Work work = Work::kernels;
  std::uint32_t stream = 0;  // index in Timeline::streams
  std::uint32_t segment = 0;
  std::uint32_t packets = 0;
  std::uint64_t batch = 0;  // of the stream's
  Lane::Crossed crossed{};
  std::int64_t enqueued_ns = 0;  // when the host began to enqueue it
  std::int64_t ready_ns = 0;     // all before it in the stream was done
  std::int64_t end_ns = 0;
};

/// The last spans of one stream, which one thread adds.
class SpanLog {
 public:
  using Clock = gpu::DeviceClock::Clock;

  /// `most` spans, at least one. `clock`: of the stream's device; may be null, and is then not asked for.
  SpanLog(std::uint32_t stream, std::size_t most, Clock::time_point epoch, const gpu::DeviceClock* clock)
      : stream_(stream), epoch_(epoch), clock_(clock), spans_(most) {}

  void add(Span span) noexcept {
    span.stream = stream_;
    spans_[added_++ % spans_.size()] = span;
  }
  void clear() noexcept { added_ = 0; }

  /// Those that are there, oldest first.
  [[nodiscard]] std::vector<Span> spans() const;
  /// Also those that are there no more.
  [[nodiscard]] std::uint64_t added() const noexcept { return added_; }
  [[nodiscard]] bool has_lost_some() const noexcept { return added_ > spans_.size(); }
  [[nodiscard]] Clock::time_point epoch() const noexcept { return epoch_; }
  [[nodiscard]] const gpu::DeviceClock& clock() const noexcept { return *clock_; }

 private:
  std::uint32_t stream_;
  Clock::time_point epoch_;
  const gpu::DeviceClock* clock_;
  std::vector<Span> spans_;  // a circle
  std::size_t added_ = 0;
};

/// A run's. Owns the logs and the devices' clocks, and outlives the lanes.
class Timeline {
 public:
  struct Stream {
    int device = 0;
    unsigned worker = 0;
    unsigned number = 0;  // of the worker's
  };

  /// `batches`: that each stream keeps, at least one.
  explicit Timeline(std::size_t batches) : batches_(batches), epoch_(SpanLog::Clock::now()) {}

  /// What the spans of a segment are called, by the segment's number.
  void name_segments(std::vector<std::string> names);
  /// The clock of the device, which is the current one; read when it is first asked for. Throws CudaError.
  [[nodiscard]] const gpu::DeviceClock& clock_of(int device);
  /// A log with room for the spans of so many batches. `clock` is the device's; null where nothing runs there.
  [[nodiscard]] SpanLog& add_stream(const Stream& stream, std::span<const SegmentShape> segments,
                                    const gpu::DeviceClock* clock);

  /// Forgets what there is: it was to warm up. While no stream adds any.
  void begin() noexcept;

  // What was recorded, once no stream adds to it any more.

  [[nodiscard]] std::span<const Stream> streams() const noexcept { return streams_; }
  [[nodiscard]] const std::vector<std::string>& segments() const noexcept { return segments_; }
  /// All spans of the time of which all are there, by `ready_ns`.
  [[nodiscard]] std::vector<Span> spans() const;
  /// How many there were before.
  [[nodiscard]] std::uint64_t left_out(std::span<const Span> spans) const noexcept;

 private:
  const std::size_t batches_;
  const SpanLog::Clock::time_point epoch_;
  std::mutex mutex_;  // for set-up, which several threads may be at
  std::vector<std::string> segments_;
  std::map<int, gpu::DeviceClock> clocks_;  // by device
  std::vector<Stream> streams_;
  std::deque<SpanLog> logs_;  // by stream
};

/// The most spans that a segment of this shape has.
[[nodiscard]] std::size_t most_spans(const SegmentShape& segment) noexcept;

}  // namespace penstock::ring
