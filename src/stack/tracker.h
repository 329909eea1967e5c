// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// From frames to packets in their flows: decoding, IP reassembly, the flow table and TCP streams, in that order. One
// worker's own; bounded in memory whatever comes. Functions that look into traffic own one; nobody else pays.

#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "packet/packet.h"
#include "stack/decoded_packet.h"
#include "stack/flow.h"
#include "stack/stream_event.h"
#include "stack/tracker_options.h"

namespace penstock::stack {

/// A packet, and what it is to its flow.
struct TrackedPacket {
  DecodedPacket packet;
  Flow* flow = nullptr;  // none: not IP, a fragment, or no room for one
  Direction direction = Direction::to_server;
  StreamEvents stream_events;      // of TCP: what this packet did to its session
  bool payload_in_stream = false;  // its payload went to the reassembled stream: it is seen there
  bool stream_ready = false;       // stream data of this direction waits to be inspected (TcpSession::inspect)
  bool stream_end = false;  // made by the stack itself, without bytes: what is left of the stream is to be inspected
  bool encrypted = false;   // its session was before it came: its payload is not to be inspected
  Refusal refused = Refusal::none;  // by the flow table and its session; `packet` has what reassembly says
  // The flow is established with this packet. TCP: the handshake was done before it, or is done by it and it has a
  // payload; else: both sides have sent.
  bool established = false;
};

/// The flow of a packet that is not known to go on.
struct PacketFlow {
  Flow* flow = nullptr;  // none: the packet belongs to no flow (DecodedPacket::has_flow)
  Direction direction = Direction::to_server;
  bool begins = false;       // there is no such flow yet: this one is kept if the packet goes on
  bool established = false;  // before this packet. TCP: the handshake was done; else: both sides have sent
  bool icmp_error = false;   // the packet is an error message about the flow
};

/// Who takes what comes out.
class PacketSink {
 public:
  virtual ~PacketSink() = default;
  /// In order. For frames that make several (tunnels) the outermost first.
  virtual void packet(TrackedPacket& packet) noexcept = 0;
  /// The last of a flow: its state may be freed. Packets with `stream_end` have come before.
  virtual void flow_ended(Flow& flow) noexcept { static_cast<void>(flow); }
};

class Tracker {
 public:
  explicit Tracker(const TrackerOptions& options);
  ~Tracker();
  Tracker(const Tracker&) = delete;
  Tracker& operator=(const Tracker&) = delete;

  /// Fetches into the cache what tracking the first kMostPrefetched of these frames will need, and changes nothing. To
  /// be called before the first of them is tracked.
  static constexpr std::size_t kMostPrefetched = 32;  // more would displace each other in the first-level cache
  void prefetch(std::span<const PacketView> frames) const noexcept;
  /// One frame. `number`: its place in the input, from 1.
  void track(PacketView packet, std::uint64_t number, PacketSink& sink) noexcept;
  /// The same for a fragment that another tracker was given: the sink has only the datagrams that it completes.
  void observe(PacketView packet, std::uint64_t number, PacketSink& sink) noexcept;
  /// One packet that was decoded elsewhere.
  void track(DecodedPacket& packet, PacketSink& sink) noexcept;

  /// In two steps, for functions that decide by flows. First the flow of the frame's own packet, of which nothing is
  /// changed: a fragment, and what is in a tunnel, is not looked at. It stays until the next call.
  [[nodiscard]] PacketFlow look_up(PacketView packet, std::uint64_t number) noexcept;
  /// Then what became of the frame. It goes on: it is tracked, and a flow that it begins has the slots that were set.
  void pass(PacketSink& sink) noexcept;
  /// It was dropped: no flow and no stream changes. If it would have begun a flow, and a slot of that was set, the sink
  /// gets the end of the flow.
  void drop(PacketSink& sink) noexcept;

  /// The frame that was tracked last was dropped: datagrams that it completed are refused (DecodedPacket::refused).
  void refuse_frame() noexcept;
  /// Ends what has timed out by this time (of packets: it never comes by itself).
  void expire(std::uint64_t now_ns, PacketSink& sink) noexcept;
  /// The input's end: all flows end.
  void finish(PacketSink& sink) noexcept;

  [[nodiscard]] const TrackerCounters& counters() const noexcept;

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace penstock::stack
