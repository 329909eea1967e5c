// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Adds up how long the transfers and the kernels of one segment take, by events where the kind of work changes. For a
// segment now and then: they cost time, and a graph has no times of its parts.

#pragma once

#include <array>
#include <cassert>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "gpu/stream.h"
#include "ring/lane.h"
#include "ring/span_marks.h"
#include "ring/timeline.h"

namespace penstock::ring {

/// `Event` and `Stream` are those of gpu/stream.h, or a test's.
template <typename Event = gpu::Event, typename Stream = gpu::Stream>
class SegmentTimes {
 public:
  void begin_segment() noexcept { count_ = 0; }
  /// Work enqueued in `stream` from here on is of the kind `work`. False if the driver refuses.
  [[nodiscard]] bool begin(Work work, const Stream& stream) noexcept { return is_doing(work) || mark(work, stream); }
  /// No more work is enqueued until the next `begin`.
  [[nodiscard]] bool end(const Stream& stream) noexcept { return is_doing(std::nullopt) || mark(std::nullopt, stream); }

  /// Once the device has finished the segment. Empty if the driver refuses.
  [[nodiscard]] std::optional<Lane::Times> add_up() const noexcept {
    Lane::Times times;
    for (std::size_t i = 0; i + 1 < count_; ++i) {
      if (!marks_[i].work) continue;
      const std::optional<double> ms = marks_[i + 1].event.try_milliseconds_since(marks_[i].event);
      if (!ms) return std::nullopt;
      const std::chrono::nanoseconds time{std::llround(*ms * 1e6)};
      switch (*marks_[i].work) {
        case Work::to_device: times.to_device += time; break;
        case Work::kernels: times.kernels += time; break;
        case Work::to_host: times.to_host += time; break;
      }
    }
    return times;
  }

 private:
  struct Mark {
    Event event{Event::Timing::kOn};
    std::optional<Work> work;  // from here on; empty: none
  };

  [[nodiscard]] bool is_doing(std::optional<Work> work) const noexcept {
    return count_ == 0 ? !work : marks_[count_ - 1].work == work;
  }
  [[nodiscard]] bool mark(std::optional<Work> work, const Stream& stream) noexcept {
    assert(count_ < marks_.size());
    Mark& mark = marks_[count_++];
    mark.work = work;
    return mark.event.record(stream);
  }

  std::array<Mark, kMostMarks> marks_;
  std::size_t count_ = 0;
};

}  // namespace penstock::ring
