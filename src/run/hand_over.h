// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Takes packets to the worker that has their connection, if they have come to another one: replies to translated
// addresses, and connections that a helper expects. They are copied before any function has seen them, and the owner
// takes them through the chain from the beginning, as if they had come to it.
//
//   worker 1: batch ─▶ keep_own ─▶ functions …          its own packets
//                         └── give ─▶ ring ─▶ inbox ─▶ batch of worker 0 ─▶ keep_own ─▶ functions …
//
// Packets of a flow stay in order. A full ring takes no more, so that workers never wait for each other. A packet is
// handed over at most once, so it cannot go round, whatever workers say about each other.

#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "conntrack/tuple_owners.h"
#include "packet/packet.h"
#include "port/port.h"
#include "port/worker_rings.h"
#include "run/chain.h"

namespace penstock::run {

class HandOver {
 public:
  /// `most_connections`: of each worker.
  HandOver(unsigned workers, std::uint32_t most_connections);
  ~HandOver();

  [[nodiscard]] const std::shared_ptr<conntrack::TupleOwners>& owners() const noexcept { return owners_; }

  // For worker `here`.

  /// Copies a packet as it arrived for its owner. False: there is no room.
  [[nodiscard]] bool give(unsigned here, unsigned owner, PacketView packet) noexcept;
  /// Wakes the workers that have been given packets.
  void wake_others(unsigned here) noexcept { rings_.wake_others(here); }
  /// What others have given to it. Frames keep their port and time, and have a mark.
  [[nodiscard]] port::RxQueue& inbox(unsigned here) noexcept;
  /// Whether the packet came by the inbox, until its mark is set to 0 for the functions.
  [[nodiscard]] static bool was_given(PacketView packet) noexcept { return packet.packet->mark != 0; }
  /// Called when nothing more comes from its ports, and all packets that it has taken are done. True: no packets are on
  /// their way to any worker, and none will be. Otherwise, call it again.
  [[nodiscard]] bool is_over(unsigned here) noexcept;

 private:
  class Inbox;
  /// What worker `index` has done.
  struct alignas(64) Part {
    std::atomic<std::uint64_t> given{0};  // packets
    std::uint64_t taken = 0;              // from its inbox
    std::atomic<std::uint64_t> done{0};   // of those taken, when it was last without packets
    std::atomic<bool> has_ended{false};   // nothing more comes from its ports
  };

  const std::shared_ptr<conntrack::TupleOwners> owners_;
  port::WorkerRings rings_;
  std::vector<std::unique_ptr<Part>> parts_;
  std::vector<std::unique_ptr<Inbox>> inboxes_;
};

/// Whether packets of the chain's connections may come to several workers.
[[nodiscard]] bool hands_over(const Chain& chain);
/// Null: they do not.
[[nodiscard]] std::unique_ptr<HandOver> make_hand_over(const Chain& chain);

}  // namespace penstock::run
