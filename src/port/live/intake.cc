// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "port/live/intake.h"

namespace penstock::port {

Intake::Taken Intake::take(Batch& batch, ReceivedFrame& frame) noexcept {
  if (segmenter_) return take_segments(batch, frame);
  if (!frame.offload.is_segmented()) return take_whole(batch, frame);
  if (frame.bytes.size() < frame.wire_length) {  // its end is missing
    counts_.too_long.add(1);
    return Taken::copied;
  }
  segmenter_ = Segmenter::of(frame.bytes, frame.offload, frame.offload_shift);
  if (!segmenter_) {
    counts_.malformed.add(1);
    return Taken::copied;
  }
  next_segment_ = 0;
  counts_.split.add(1);
  return take_segments(batch, frame);
}

Intake::Taken Intake::take_whole(Batch& batch, ReceivedFrame& frame) noexcept {
  if (frame.offload.lacks_checksum() && !is_complete_) {
    if (!complete_checksum(frame.bytes, frame.offload, frame.offload_shift)) {
      counts_.malformed.add(1);
      return Taken::copied;
    }
    counts_.checksums.add(1);
    is_complete_ = true;  // even if the batch is full now
  }
  if (exchange_ != nullptr && !exchange_->keeps(worker_, {frame.bytes, frame.timestamp_ns, frame.wire_length})) {
    is_complete_ = false;
    return Taken::copied;
  }
  const Arrival arrival = arrival_of(frame, frame.wire_length);
  Taken taken = Taken::copied;
  if (frame.can_be_lent && batch.lend(frame.region, frame.offset, frame.bytes.size(), arrival)) {
    taken = Taken::lent;
    counts_.lent.add(1);
  } else if (frame.can_be_lent || !batch.append(frame.bytes, arrival)) {
    if (!batch.empty()) return Taken::full;
    counts_.too_long.add(1);
  }
  is_complete_ = false;
  return taken;
}

Intake::Taken Intake::take_segments(Batch& batch, const ReceivedFrame& frame) noexcept {
  for (; next_segment_ < segmenter_->count(); ++next_segment_) {
    const std::size_t length = segmenter_->length(next_segment_);
    const Arrival arrival = arrival_of(frame, length);
    if (exchange_ != nullptr) {
      // Segments are IP packets of at most 64 KiB, which fit.
      segmenter_->write(next_segment_, scratch_.data());
      const std::span<const std::uint8_t> segment(scratch_.data(), length);
      if (exchange_->keeps(worker_, {segment, frame.timestamp_ns, arrival.wire_length}) &&
          !batch.append(segment, arrival)) {
        if (!batch.empty()) return Taken::full;
        counts_.too_long.add(1);
      }
    } else if (std::uint8_t* const to = batch.append_unwritten(length, arrival)) {
      segmenter_->write(next_segment_, to);
    } else {
      if (!batch.empty()) return Taken::full;
      counts_.too_long.add(1);
    }
    counts_.segments.add(1);
  }
  segmenter_.reset();
  return Taken::copied;
}

RxQueue::Discarded Intake::give_up(const ReceivedFrame& frame) noexcept {
  RxQueue::Discarded left{RxStatus::more, 1, frame.bytes.size()};
  if (!segmenter_ && frame.offload.is_segmented()) {
    next_segment_ = 0;
    segmenter_ = Segmenter::of(frame.bytes, frame.offload, frame.offload_shift);
  }
  if (segmenter_) {
    left = {RxStatus::more, segmenter_->count() - next_segment_, 0};
    for (; next_segment_ < segmenter_->count(); ++next_segment_) left.bytes += segmenter_->length(next_segment_);
    segmenter_.reset();
  }
  is_complete_ = false;
  return left;
}

}  // namespace penstock::port
