// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// From a frame to the packets in it: the frame's own, those in tunnels, and datagrams that its fragment completes. What
// is wrong or odd is told by Suricata's decode events, where Suricata's decoder tells it. Reads no byte outside of the
// frame; allocates only when a tunnel or a datagram is the deepest or the largest so far.

#pragma once

#include <cstdint>
#include <memory>
#include <type_traits>
#include <utility>

#include "packet/packet.h"
#include "stack/decoded_packet.h"
#include "stack/tracker_options.h"

namespace penstock::stack {

class Decoder {
 public:
  /// Counts its own part of `counters`, which outlives it: packets, not_ip, tunnelled and all of fragments.
  Decoder(const TrackerOptions& options, TrackerCounters& counters);
  ~Decoder();
  Decoder(const Decoder&) = delete;
  Decoder& operator=(const Decoder&) = delete;

  /// Hands on at least one packet. In order: the frame's own first, the outer before what it carries, a fragment before
  /// the datagram that it completes. `number`: of the frame, from 1. `use`: void(DecodedPacket&) noexcept; the packets'
  /// bytes stay until the next call, the packets themselves until `use` returns.
  template <typename Use>
  void decode(PacketView frame, std::uint64_t number, Use&& use) noexcept {
    begin(frame, number);
    complete(std::forward<Use>(use));
  }

  /// In two steps: the frame's own packet first, by which nothing is changed but counters. What it carries is decoded,
  /// and fragments are kept, by `complete`: not where the frame is dropped between the two.
  const DecodedPacket& begin(PacketView frame, std::uint64_t number) noexcept;
  [[nodiscard]] DecodedPacket& outermost() noexcept;
  template <typename Use>
  void complete(Use&& use) noexcept {
    static_assert(std::is_nothrow_invocable_v<Use&, DecodedPacket&>);
    using Callable = std::remove_reference_t<Use>;
    const auto call = [](void* callable, DecodedPacket& packet) noexcept {
      (*static_cast<Callable*>(callable))(packet);
    };
    complete_to(Sink{const_cast<void*>(static_cast<const void*>(&use)), call});
  }

  /// The frame that was decoded last is dropped, and with it the datagrams that it completed: what comes of their
  /// fragments again is DecodedPacket::refused.
  void refuse_completed() noexcept;

  /// Gives up datagrams that have waited for too long by this time (of packets).
  void expire(std::uint64_t now_ns) noexcept;

 private:
  struct Sink {
    void* callable;
    void (*call)(void*, DecodedPacket&) noexcept;
  };
  struct Parts;
  void complete_to(Sink sink) noexcept;

  std::unique_ptr<Parts> parts_;
};

}  // namespace penstock::stack
