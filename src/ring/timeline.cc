// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "ring/timeline.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace penstock::ring {

std::vector<Span> SpanLog::spans() const {
  const std::size_t size = spans_.size();
  if (added_ <= size) return {spans_.begin(), spans_.begin() + static_cast<std::ptrdiff_t>(added_)};
  std::vector<Span> in_order(size);
  std::ranges::rotate_copy(spans_, spans_.begin() + static_cast<std::ptrdiff_t>(added_ % size), in_order.begin());
  return in_order;
}

std::size_t most_spans(const SegmentShape& segment) noexcept {
  const bool any_down = segment.frames_down || !segment.down.empty();
  const bool any_states = std::ranges::any_of(segment.stages, [](const auto& stage) { return stage.state_bytes > 0; });
  // Transfers for packets, verdicts and states, each followed by kernels; or just kernels. Then results, and the rest.
  return 2 * std::max<std::size_t>(
                 1, (segment.sends_packets ? 1 : 0) + (segment.verdicts_up ? 1 : 0) + (any_states ? 1 : 0)) +
         1 + (any_down ? 1 : 0);
}

void Timeline::name_segments(std::vector<std::string> names) {
  const std::scoped_lock lock(mutex_);
  segments_ = std::move(names);
}

const gpu::DeviceClock& Timeline::clock_of(int device) {
  const std::scoped_lock lock(mutex_);
  return clocks_[device];
}

SpanLog& Timeline::add_stream(const Stream& stream, std::span<const SegmentShape> segments,
                              const gpu::DeviceClock* clock) {
  const std::scoped_lock lock(mutex_);
  std::size_t of_batch = 0;
  for (const SegmentShape& segment : segments) of_batch += most_spans(segment);
  streams_.push_back(stream);
  return logs_.emplace_back(static_cast<std::uint32_t>(streams_.size() - 1),
                            std::max<std::size_t>(1, batches_ * of_batch), epoch_, clock);
}

void Timeline::begin() noexcept {
  for (SpanLog& log : logs_) log.clear();
}

std::vector<Span> Timeline::spans() const {
  std::vector<Span> all;
  std::int64_t from = std::numeric_limits<std::int64_t>::min();
  for (const SpanLog& log : logs_) {
    const std::vector<Span> spans = log.spans();
    if (log.has_lost_some()) from = std::max(from, spans.front().ready_ns);
    all.insert(all.end(), spans.begin(), spans.end());
  }
  std::erase_if(all, [from](const Span& span) { return span.ready_ns < from; });
  std::ranges::stable_sort(all, {}, &Span::ready_ns);
  return all;
}

std::uint64_t Timeline::left_out(std::span<const Span> spans) const noexcept {
  std::uint64_t there = 0;
  for (const SpanLog& log : logs_) there += log.added();
  return there - spans.size();
}

}  // namespace penstock::ring
