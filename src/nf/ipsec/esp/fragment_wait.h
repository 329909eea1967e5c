// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Fragments of ESP wait in the chain's stack until their datagram is complete: reassembly comes before ESP (RFC 4303
// §3.4.1). One worker's own. A datagram has one reading at most: a fragment that contradicts an earlier one is refused,
// and one that overlaps others in part ends their datagram, as in Linux.
//
// Of UDP, only the first fragment shows whether the datagram carries ESP. If it comes first and shows that it does not,
// all fragments pass as they are; if others came before it, the datagram is reassembled and goes on as one packet.

#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "nf/ipsec/esp/decapsulate_core.h"
#include "nf/ipsec/reasons.h"
#include "packet/packet.h"
#include "report/published.h"
#include "stack/tracker_options.h"
#include "stack/traffic_view.h"

namespace penstock::ipsec {

/// Of the fragments that a function was given.
struct FragmentCounts {
  std::uint64_t fragments = 0;
  std::uint64_t reassembled = 0;  // datagrams
  std::uint64_t timed_out = 0;    // fragments whose datagram did not become complete in time
  std::uint64_t dropped = 0;      // fragments that contradict or overlap others, or for which there was no room

  FragmentCounts& operator+=(const FragmentCounts& other) noexcept;
};

/// What is known of UDP datagrams whose fragments come. Of a fixed size: if two share a place, the older one is
/// forgotten.
class UdpDatagrams {
 public:
  enum class State : std::uint8_t { unknown, waits, passes };

  UdpDatagrams();
  /// Of the fragment's datagram.
  [[nodiscard]] State& state_of(PacketView fragment) noexcept;

 private:
  struct Entry {
    std::uint64_t datagram = 0;  // a keyed hash
    std::uint64_t last_ns = 0;
    State state = State::unknown;
  };
  const std::uint64_t seed_;
  std::vector<Entry> entries_;
};

class FragmentWait final : public stack::FrameSink {
 public:
  /// What the stack does for it.
  [[nodiscard]] static stack::TrackerOptions stack_options() noexcept;

  void attach(stack::Attachment& attachment) noexcept;

  /// What became of a fragment.
  struct Outcome {
    enum class Kind : std::uint8_t {
      waits,
      dropped,    // for `reason`
      passes,     // as it is: its datagram carries no ESP
      completes,  // `datagram`
    };
    Kind kind = Kind::waits;
    Reason reason = Reason::none;
    std::span<const std::uint8_t> datagram;  // an IP packet; until the next call
  };
  /// `udp`: of a UDP datagram, to these ports if it carries ESP.
  [[nodiscard]] Outcome take(PacketView fragment, bool udp, const NatTraversalPorts& ports) noexcept;

  /// Gives up what has waited for too long by this time of packets.
  void expire(std::uint64_t now_ns) noexcept;
  [[nodiscard]] FragmentCounts counts() const noexcept;

  void begin_frame(PacketView /*frame*/, std::size_t /*index*/) noexcept override {}
  void packet(stack::TrackedPacket& packet) noexcept override;
  void begin_end() noexcept override {}

 private:
  [[nodiscard]] bool passes(PacketView fragment, const NatTraversalPorts& ports) noexcept;
  void refuse(Reason reason) noexcept;

  stack::Attachment* attachment_ = nullptr;
  UdpDatagrams udp_datagrams_;
  Outcome outcome_;  // of the fragment that is being tracked
};

}  // namespace penstock::ipsec
