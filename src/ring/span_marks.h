// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Takes the times of one lane's work: records an event where the kind of work changes and, once the device has finished
// the segment, reads the times between the events. Like the lane, it handles one segment at a time.

#pragma once

#include <array>
#include <cassert>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>

#include "gpu/stream.h"
#include "ring/timeline.h"

namespace penstock::ring {

/// Of a segment: up (states, packets) and kernels; up and kernels for verdicts; down, end; down, end. Two are to spare.
inline constexpr std::size_t kMostMarks = 10;

/// `Event` and `Stream` are those of gpu/stream.h, or a test's.
template <typename Event = gpu::Event, typename Stream = gpu::Stream>
class SpanMarks {
 public:
  /// `base` is an event that happened at `base_time`. `log` and `base` are borrowed. Throws what the construction of an
  /// event throws.
  SpanMarks(SpanLog& log, const Event& base, SpanLog::Clock::time_point base_time)
      : log_(log), reference_(&base), reference_ns_(static_cast<double>(since_epoch(base_time))) {}

  /// Discards marks that were not collected.
  void begin_segment(std::size_t segment, std::size_t packets) noexcept {
    count_ = 0;
    if (segment == 0) ++batches_;
    segment_ = static_cast<std::uint32_t>(segment);
    packets_ = static_cast<std::uint32_t>(packets);
  }

  /// Work enqueued in `stream` from here on is of the kind `work`. `crossed`: the bytes of what the segment has
  /// enqueued before. False if the driver refuses.
  [[nodiscard]] bool begin(Work work, const Lane::Crossed& crossed, const Stream& stream) noexcept {
    return is_doing(work) || mark(work, crossed, stream);
  }
  /// No more work is enqueued until the next `begin`.
  [[nodiscard]] bool end(const Lane::Crossed& crossed, const Stream& stream) noexcept {
    return is_doing(std::nullopt) || mark(std::nullopt, crossed, stream);
  }

  /// Adds the spans to the log, once the device has finished the segment. `crossed`: the bytes of the whole segment.
  /// False if the driver refuses.
  [[nodiscard]] bool collect(const Lane::Crossed& crossed) noexcept {
    const std::size_t count = std::exchange(count_, 0);
    if (count == 0) return true;
    assert(!marks_[count - 1].work);
    std::array<std::int64_t, kMostMarks> times;
    double last_ns = 0;
    for (std::size_t i = 0; i < count; ++i) {
      const std::optional<double> ms = marks_[i].event.try_milliseconds_since(*reference_);
      if (!ms) return false;
      last_ns = reference_ns_ + *ms * 1e6;
      times[i] = std::llround(last_ns);
    }
    // Bytes that are counted only now belong to the last span.
    marks_[count - 1].crossed = crossed;
    for (std::size_t i = 0; i + 1 < count; ++i) {
      const Mark& from = marks_[i];
      const Mark& to = marks_[i + 1];
      if (!from.work) continue;
      log_.add({.work = *from.work,
                .segment = segment_,
                .packets = packets_,
                .batch = batches_ - 1,
                .crossed = {to.crossed.to_device - from.crossed.to_device, to.crossed.to_host - from.crossed.to_host},
                .enqueued_ns = from.enqueued_ns,
                .ready_ns = times[i],
                .end_ns = times[i + 1]});
    }
    // The next times are relative to this event: CUDA returns the time between events as a float, which gets too coarse
    // in a long run.
    std::swap(kept_, marks_[count - 1].event);
    reference_ = &kept_;
    reference_ns_ = last_ns;
    return true;
  }

 private:
  struct Mark {
    Event event{Event::Timing::kOn};
    std::optional<Work> work;  // from here on; empty: none
    Lane::Crossed crossed;     // before this mark
    std::int64_t enqueued_ns = 0;
  };

  [[nodiscard]] std::int64_t since_epoch(SpanLog::Clock::time_point time) const noexcept {
    return std::chrono::nanoseconds(time - log_.epoch()).count();
  }
  [[nodiscard]] bool is_doing(std::optional<Work> work) const noexcept {
    return count_ == 0 ? !work : marks_[count_ - 1].work == work;
  }
  [[nodiscard]] bool mark(std::optional<Work> work, const Lane::Crossed& crossed, const Stream& stream) noexcept {
    assert(count_ < kMostMarks);
    Mark& mark = marks_[count_++];
    mark.work = work;
    // zero-copy bytes are counted before their kernel is enqueued, so the first span includes them
    mark.crossed = count_ > 1 ? crossed : Lane::Crossed{};
    mark.enqueued_ns = since_epoch(SpanLog::Clock::now());
    return mark.event.record(stream);
  }

  SpanLog& log_;
  const Event* reference_;
  double reference_ns_;
  Event kept_{Event::Timing::kOn};
  std::array<Mark, kMostMarks> marks_;
  std::size_t count_ = 0;
  std::uint32_t segment_ = 0;
  std::uint32_t packets_ = 0;
  std::uint64_t batches_ = 0;
};

}  // namespace penstock::ring
