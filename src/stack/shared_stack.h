// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The stack shared by all functions of a chain in one worker (Gaviss §4.4). Headers are parsed and flows hashed once.
// Flows, datagrams and streams are tracked once for all functions that see the same packets. Only what some function
// needs is done at all.
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

/// How one function of the chain uses the stack.
struct StackUse {
  StackNeed need = StackNeed::none;
  bool ends_packets = false;     // may drop packets
  bool changes_packets = false;  // changes bytes, lengths or timestamps
  bool in_batches = false;       // its packets come back from a device in whole batches, so it cannot wait for
                                 // another function between two packets
  std::size_t run = 0;       // functions of different runs see a batch at different times, or different packets of it
  TrackerOptions options{};  // if it needs datagrams or streams; for flows only, the view's options apply
};

/// Functions that share a view, by position in the chain.
struct ViewPlan {
  std::vector<std::size_t> functions;
  TrackerOptions options;
  bool lockstep = false;  // each packet passes all of them before the next packet starts
};

/// Functions share a view if they all see the same packets with the same contents, and one set of options suits them
/// all. The first one may drop packets if it decides by flow, since it does so before they are tracked.
[[nodiscard]] std::vector<ViewPlan> plan_views(std::span<const StackUse> chain);

class SharedStack {
 public:
  /// `reads`: all fields that the chain's stages read. `worker`: from 0; makes flow ids unique across workers.
  SharedStack(FieldSet reads, std::span<const StackUse> chain, unsigned worker);

  /// Parses each packet, and computes its flow hash if the chain needs it. Stores both in the packet's descriptor.
  void prepare(std::span<const PacketView> packets) const noexcept;

  /// The attachment of a function, by position in the chain; null if it needs nothing from the stack.
  [[nodiscard]] Attachment* attachment(std::size_t function) noexcept { return functions_[function].attachment; }
  /// One past the last function, counted from this one, that each packet passes before the next packet starts.
  [[nodiscard]] std::size_t lockstep_end(std::size_t function) const noexcept {
    return functions_[function].lockstep_end;
  }
  /// The function's stage has decided on all packets of its batch.
  void settle(std::size_t function) noexcept {
    if (functions_[function].settles != nullptr) functions_[function].settles->settle();
  }
  /// The packet has passed all functions in lockstep from this one on, or one of them dropped it.
  void end_lockstep(std::size_t function) noexcept {
    if (functions_[function].lockstep != nullptr) functions_[function].lockstep->settle();
  }
  /// End of input: ends all flows.
  void finish() noexcept;

 private:
  struct Function {
    Attachment* attachment = nullptr;
    TrafficView* settles = nullptr;   // the view whose verdicts are final once this function has decided
    TrafficView* lockstep = nullptr;  // the lockstep view that begins with this function
    std::size_t lockstep_end = 0;
  };
  bool hash_flows_;
  std::vector<std::unique_ptr<TrafficView>> views_;
  std::vector<Function> functions_;
};

}  // namespace penstock::stack
