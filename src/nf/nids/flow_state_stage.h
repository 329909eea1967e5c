// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The state stage of `nids`: sends with each TCP segment the state that the literals' automaton had after the previous
// segment of the same direction. The stage follows sequence numbers itself, because the stack has not yet seen the
// packets of batches that are still on the device. The states are a cache: flows that share an entry overwrite each
// other, and a segment that does not start where the previous one ended gets no state. So a state may be missing, or,
// if a function drops packets, may differ from the stream. Users of a state must compare the bytes.

#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "function/network_function.h"
#include "nf/nids/match/flow_state.h"

namespace penstock::nids {

class FlowStateStage final : public function::StateStage {
 public:
  /// Holds up to 2^`bits` flow directions, 24 bytes each.
  explicit FlowStateStage(unsigned bits = 16) : shift_(64 - bits), entries_(std::size_t{1} << bits) {}

  /// Writes a FlowState for each packet.
  void fill(std::span<const PacketView> packets, std::span<std::byte* const> states) noexcept override;

 private:
  struct Entry {
    std::uint64_t key = 0;   // identifies flow and direction
    std::uint32_t next = 0;  // the expected next sequence number
    FlowState state;         // the automaton's state before `next`
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
