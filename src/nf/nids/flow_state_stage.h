// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The state stage of `nids`: sends with each TCP segment the state of the literals' automaton at the end of what its
// direction of the flow has sent before. It follows sequence numbers by itself, since batches whose packets the stack
// has not seen yet are still on the device. A cache: flows that share an entry replace each other, and a segment that
// does not continue where the last one ended gets no state. So a state may be missing or, after packets that a function
// drops, differ from the stream; whoever relies on it compares the bytes.

#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "function/network_function.h"
#include "nf/nids/match/flow_state.h"

namespace penstock::nids {

class FlowStateStage final : public function::StateStage {
 public:
  /// 2^`bits` directions of flows at once, 24 bytes each.
  explicit FlowStateStage(unsigned bits = 16) : shift_(64 - bits), entries_(std::size_t{1} << bits) {}

  /// Writes a FlowState for each packet.
  void fill(std::span<const PacketView> packets, std::span<std::byte* const> states) noexcept override;

 private:
  struct Entry {
    std::uint64_t key = 0;   // of the direction of the flow
    std::uint32_t next = 0;  // the sequence number that continues it
    FlowState state;         // there
  };
  struct Segment {
    std::uint64_t key = 0;  // 0: not a TCP segment
    std::uint32_t sequence = 0;
    bool begins = false;  // a SYN
    std::span<const std::uint8_t> payload;
  };
  [[nodiscard]] static Segment segment_of(PacketView packet) noexcept;
  [[nodiscard]] Entry& entry_of(std::uint64_t key) noexcept { return entries_[key >> shift_]; }
  [[nodiscard]] FlowState take(const Segment& segment) noexcept;

  const unsigned shift_;
  std::vector<Entry> entries_;
};

}  // namespace penstock::nids
