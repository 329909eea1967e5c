// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Holds fragments of ESP in the chain's stack until their datagram is complete: reassembly precedes ESP processing (RFC
// 4303 §3.4.1). Owned by one worker. No datagram has two interpretations: a fragment that contradicts an earlier one is
// refused, and a partial overlap discards the datagram, as in Linux.
//
// Only the first fragment of a UDP datagram shows whether it carries ESP. If it arrives first and shows that it does
// not, all fragments pass unchanged. If other fragments arrived before it, the datagram is reassembled and forwarded as
// one packet.

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

/// Counts of fragments that a function received.
struct FragmentCounts {
  std::uint64_t fragments = 0;
  std::uint64_t reassembled = 0;  // datagrams
  std::uint64_t timed_out = 0;    // fragments of datagrams that were not complete in time
  std::uint64_t dropped = 0;      // fragments that contradicted or overlapped others, or found no room

  FragmentCounts& operator+=(const FragmentCounts& other) noexcept;
};

/// State of the UDP datagrams whose fragments are arriving. A fixed-size table: on a collision, the older entry is
/// overwritten.
class UdpDatagrams {
 public:
  enum class State : std::uint8_t { unknown, waits, passes };

  UdpDatagrams();
  /// The state of the datagram that the fragment belongs to.
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
  /// The services that it needs from the stack.
  [[nodiscard]] static stack::TrackerOptions stack_options() noexcept;

  /// May be called again, with the same attachment, if another sink has taken its place meanwhile.
  void attach(stack::Attachment& attachment) noexcept;
  /// Like `attach`, with the attachment that it already has, if any.
  void attach_again() noexcept {
    if (attachment_ != nullptr) attach(*attachment_);
  }

  /// What happened to a fragment.
  struct Outcome {
    enum class Kind : std::uint8_t {
      waits,
      dropped,    // for `reason`
      passes,     // unchanged, because its datagram carries no ESP
      completes,  // the fragment completes `datagram`
    };
    Kind kind = Kind::waits;
    Reason reason = Reason::none;
    std::span<const std::uint8_t> datagram;  // an IP packet, valid until the next call
  };
  /// With `udp`, a fragment of a UDP datagram, which carries ESP only if it is for one of `ports`.
  [[nodiscard]] Outcome take(PacketView fragment, bool udp, const NatTraversalPorts& ports) noexcept;

  /// Discards fragments that have waited too long. `now_ns` is in packet time.
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
  Outcome outcome_;  // for the fragment being tracked
};

/// A worker's fragments, and their counts for the report. Shared by the worker's stages of all epochs.
struct WorkerFragments {
  FragmentWait wait;
  report::Published<FragmentCounts> counts;

  void publish() noexcept { counts.publish(wait.counts()); }
};

}  // namespace penstock::ipsec
