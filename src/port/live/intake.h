// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// What a queue of an interface does with each frame that it has received, in this order: the NIC's work that is left is
// done (offload.h), frames of other workers' flows go to these (exchange.h), and own frames are lent or copied to the
// batch. A frame of several segments may fill several batches.

#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "base/counter.h"
#include "packet/batch.h"
#include "port/live/exchange.h"
#include "port/live/offload.h"

namespace penstock::port {

/// A frame in the queue's memory, which stays in place until the intake has taken it.
struct ReceivedFrame {
  std::span<std::uint8_t> bytes;  // completed in place
  std::uint64_t timestamp_ns = 0;
  std::uint32_t wire_length = 0;
  VirtioHeader offload;           // all zero: the frame is complete
  std::size_t offload_shift = 0;  // bytes inserted since the offsets in `offload` were valid
  bool can_be_lent = false;       // from `region`, at `offset`, with the chain's room around it
  PacketMemory::Region region = 0;
  std::uint32_t offset = 0;
};

class Intake {
 public:
  /// `exchange`: null if there is a single worker. Borrowed.
  Intake(unsigned worker, PortIndex port, Exchange* exchange)
      : worker_(worker), port_(port), exchange_(exchange), scratch_(exchange != nullptr ? kLongestFrame : 0) {}

  enum class Taken : std::uint8_t {
    copied,  // its memory is free, whether the frame is in the batch, in another worker's ring, or was dropped
    lent,    // it is in the batch, and its memory is in use
    full,    // the batch has no room for it, or for its next segment: call `take` again with the next batch
  };
  Taken take(Batch& batch, ReceivedFrame& frame) noexcept;
  /// The frame will not be taken any further. Returns how many of its packets, and bytes of these, have been left out.
  RxQueue::Discarded give_up(const ReceivedFrame& frame) noexcept;

  struct Counts {
    Counter checksums;  // completed
    Counter split;      // frames that were split into segments
    Counter segments;   // of these
    Counter lent;       // frames that were not copied
    Counter malformed;  // dropped: what the NIC was to do is not possible
    Counter too_long;   // dropped: they fit in no batch
  };
  /// Thread-safe.
  [[nodiscard]] const Counts& counts() const noexcept { return counts_; }
  /// The counts of a port's queues, added up.
  struct Sums {
    std::uint64_t checksums = 0, split = 0, segments = 0, lent = 0, malformed = 0, too_long = 0;
    void add(const Counts& counts) noexcept {
      checksums += counts.checksums.get();
      split += counts.split.get();
      segments += counts.segments.get();
      lent += counts.lent.get();
      malformed += counts.malformed.get();
      too_long += counts.too_long.get();
    }
  };

 private:
  static constexpr std::size_t kLongestFrame = 128 << 10;

  Taken take_whole(Batch& batch, ReceivedFrame& frame) noexcept;
  Taken take_segments(Batch& batch, const ReceivedFrame& frame) noexcept;
  [[nodiscard]] Arrival arrival_of(const ReceivedFrame& frame, std::size_t length) const noexcept {
    return {frame.timestamp_ns, static_cast<std::uint32_t>(length), port_};
  }

  const unsigned worker_;
  const PortIndex port_;
  Exchange* const exchange_;
  std::vector<std::uint8_t> scratch_;   // a segment, if there are other workers
  std::optional<Segmenter> segmenter_;  // of the frame that is being taken
  std::size_t next_segment_ = 0;
  bool is_complete_ = false;  // the checksum of the frame that is being taken
  Counts counts_;
};

}  // namespace penstock::port
