// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// What functions on a device have for themselves on the host if a chain shares nothing (plan::Sharing::none), as in
// Gaviss's baseline, which works like G-NET (§5.2): a packet buffer and a protocol stack. For comparisons only.
//
//     packets ─▶ own buffer ─▶ own stack: decode, reassemble IP, flow, TCP session, stream ─▶ segment ─▶ next function
//
// Only frames that the segment sends whole are copied; headers are gathered by the lane in any case. A function that
// follows flows or connections itself does so in any case, and gets no second stack.

#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "plan/device_plan.h"
#include "run/chain.h"
#include "run/counters.h"
#include "run/flight.h"
#include "stack/frame_numbers.h"
#include "stack/tracker.h"

namespace penstock::run {

class OwnStacks {
 public:
  /// Borrows all arguments. Makes nothing unless the plan has own stacks.
  OwnStacks(const Chain& chain, const plan::DevicePlan& plan, WorkerCounters& counters);

  /// Before the first batch: the functions' buffers for one batch in flight.
  void make_buffers(Flight& flight) const;
  /// Before the flight's current segment starts: its packets go through its function's buffer and stack. What the stack
  /// finds out is not used: it does not change what happens to packets.
  void take_in(Flight& flight) noexcept;
  /// Ends all flows. No packets may follow.
  void end() noexcept;

  /// Of the segment's function; null: it has no stack of its own. For tests.
  [[nodiscard]] const stack::Tracker* tracker(std::size_t segment) const noexcept {
    return functions_[segment].tracker.get();
  }

 private:
  struct Function {
    std::unique_ptr<stack::Tracker> tracker;  // null: it follows flows or connections itself
    stack::FrameNumbers numbers;
  };

  const Chain& chain_;
  const plan::DevicePlan& plan_;
  WorkerCounters& counters_;
  std::vector<Function> functions_;  // by segment; empty: all share one stack
};

}  // namespace penstock::run
