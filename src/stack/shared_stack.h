// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// What all functions of a chain share in one worker (Gaviss §4.4): headers are parsed and flows hashed once; flows,
// datagrams and streams are tracked once for all functions that see the same packets. Nobody pays for what no function
// asked for.
//
//     firewall ──▶ flow counter ──▶ nids ──▶ nids ──▶ ipsec (in) ──▶ nids
//     (drops)      flow              tcp_stream        changes        tcp_stream
//                  └────────── one view ───────┘       packets       └ another ┘

#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "packet/field.h"
#include "packet/packet.h"
#include "stack/stack_need.h"
#include "stack/tracker_options.h"
#include "stack/traffic_view.h"

namespace penstock::stack {

/// What one function of the chain means to the stack.
struct StackUse {
  StackNeed need = StackNeed::none;
  bool ends_packets = false;     // it may drop
  bool changes_packets = false;  // bytes, lengths or times
  bool in_batches = false;       // its packets come back from a device, a batch at a time: it cannot wait for another
                                 // function before the next packet
  std::size_t run = 0;           // functions of different runs see a batch at different times, or other packets of it
  TrackerOptions options{};      // of one that needs datagrams or streams; of flows alone the view's are used
};

/// Functions that share a view, by their places in the chain.
struct ViewPlan {
  std::vector<std::size_t> functions;
  TrackerOptions options;
  bool lockstep = false;  // one packet is to pass all of them before the next one comes
};

/// Functions share a view if each of them sees all packets that the others see, as the others see them, and the same
/// options suit all. The first one may drop packets if it decides by flows: it does so before they are tracked.
[[nodiscard]] std::vector<ViewPlan> plan_views(std::span<const StackUse> chain);

class SharedStack {
 public:
  /// `reads`: all that the chain's stages read. `worker`: from 0; no two give flows the same id.
  SharedStack(FieldSet reads, std::span<const StackUse> chain, unsigned worker);

  /// Fills in what the stack finds, in each packet's descriptor.
  void prepare(std::span<const PacketView> packets) const noexcept;

  /// Of a function by its place in the chain; null where it needs nothing.
  [[nodiscard]] Attachment* attachment(std::size_t function) noexcept { return functions_[function].attachment; }
  /// One past the last of the functions, from this one on, that each packet passes before the next packet begins.
  [[nodiscard]] std::size_t lockstep_end(std::size_t function) const noexcept {
    return functions_[function].lockstep_end;
  }
  /// The function's stage has decided about all packets that it was given.
  void settle(std::size_t function) noexcept {
    if (functions_[function].settles != nullptr) functions_[function].settles->settle();
  }
  /// The packet has passed the functions that go in lockstep from this one on, or was dropped among them.
  void end_lockstep(std::size_t function) noexcept {
    if (functions_[function].lockstep != nullptr) functions_[function].lockstep->settle();
  }
  /// The input's end: all flows end.
  void finish() noexcept;

 private:
  struct Function {
    Attachment* attachment = nullptr;
    TrafficView* settles = nullptr;   // whose packets are known to pass once this function has decided
    TrafficView* lockstep = nullptr;  // that begins with it
    std::size_t lockstep_end = 0;
  };
  bool hash_flows_;
  std::vector<std::unique_ptr<TrafficView>> views_;
  std::vector<Function> functions_;
};

}  // namespace penstock::stack
