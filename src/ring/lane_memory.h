// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The memory of a lane: what it has where, by its shape alone. A lane can be given the host memory in which its results
// and states are, so that another process that maps this memory too has them without a copy.

#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "ring/lane.h"

namespace penstock::ring {

/// Pinned host memory for a lane, borrowed. Each part begins at a multiple of 64 and has the size that LaneSizes says.
struct LaneMemory {
  /// Verdicts, findings and lengths of a segment. The lane reads them again, so no other process may write there.
  std::span<std::uint8_t> results;
  std::span<std::uint8_t> packed;  // records and frames; the lane never reads them
  std::span<std::uint8_t> states;  // the lane only copies them
};

/// Byte offsets of the per-packet results in their block, which begins with the verdicts.
struct ResultPlaces {
  std::vector<std::size_t> findings;  // by stage
  std::vector<std::size_t> lengths;   // by stage
  std::size_t bytes = 0;              // size of the block

  void lay_out(const SegmentShape& shape, std::size_t packets);
};

/// The byte offset of a stage's states in the segment's states; for the index after the last stage, their total size.
[[nodiscard]] std::size_t state_place(const SegmentShape& segment, std::size_t stage, std::size_t packets) noexcept;

/// In bytes.
struct LaneSizes {
  explicit LaneSizes(const LaneShape& shape);

  std::size_t results = 0;
  std::size_t packed = 0;                  // of all segments together
  std::vector<std::size_t> packed_places;  // where the part of each segment begins
  std::size_t states = 0;
  std::size_t changes = 0;      // from the host before a segment; 0: never
  std::size_t frames = 0;       // that are sent
  std::size_t sent = 0;         // the same with gaps
  std::size_t room = 0;         // that the frames of a batch have around them on the device
  std::size_t packed_most = 0;  // of one segment
  bool headers_up = false;
  /// Of all that the lane has on a device, without its stages. An upper bound.
  std::size_t on_device = 0;
  /// Of its own pinned memory on the host, beside what LaneMemory has. An upper bound.
  std::size_t on_host = 0;
};

}  // namespace penstock::ring
