// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Decodes a frame into its packets: the outermost packet, those in tunnels, and datagrams that its fragment completes.
// Sets the same decode events for errors and anomalies as Suricata's decoder. Never reads outside the frame. Allocates
// memory only when a frame needs more buffers for reassembled datagrams than any before.

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
  /// Updates packets, not_ip, tunnelled and the fragment counters of `counters`, which must outlive the decoder.
  Decoder(const TrackerOptions& options, TrackerCounters& counters);
  ~Decoder();
  Decoder(const Decoder&) = delete;
  Decoder& operator=(const Decoder&) = delete;

  /// Calls `use` with each packet, at least one. The frame's outermost packet comes first, an outer packet before the
  /// one it carries, and a fragment before the datagram that it completes. `number`: of the frame, from 1. `use`:
  /// void(DecodedPacket&) noexcept. Packets are valid until `use` returns, their bytes until the next call.
  template <typename Use>
  void decode(PacketView frame, std::uint64_t number, Use&& use) noexcept {
    begin(frame, number);
    complete(std::forward<Use>(use));
  }

  /// The same in two steps. `begin` decodes only the outermost packet and changes nothing but counters. `complete` then
  /// decodes its payload and stores fragments. Skip it if the frame is dropped in between.
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

  /// The last decoded frame is dropped, and with it the datagrams that it completed. Further fragments of these
  /// datagrams are refused (DecodedPacket::refused).
  void refuse_completed() noexcept;

  /// Discards incomplete datagrams that have timed out by `now_ns`, in packet time.
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
