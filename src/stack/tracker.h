// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Turns frames into packets with flows: decoding, IP reassembly, flow lookup and TCP stream reassembly, in that order.
// Each tracker belongs to one worker, and its memory is bounded whatever the traffic.

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

/// A packet and its relation to its flow.
struct TrackedPacket {
  DecodedPacket packet;
  Flow* flow = nullptr;  // null: not IP, a fragment, or no memory for the flow
  Direction direction = Direction::to_server;
  StreamEvents stream_events;       // TCP: what this packet did to its session
  bool payload_in_stream = false;   // its payload was added to the stream and is inspected there
  bool stream_ready = false;        // stream data of this direction waits to be inspected (TcpSession::inspect)
  bool stream_end = false;          // a pseudo-packet without bytes: inspect what is left of the stream
  bool encrypted = false;           // the session was already encrypted: do not inspect the payload
  Refusal refused = Refusal::none;  // by the flow table or the session; reassembly sets packet.refused
  // The flow is established as of this packet. TCP: the handshake was complete before it, or this packet completes it
  // and has a payload. Other protocols: both sides have sent.
  bool established = false;
};

/// The flow of a packet whose verdict is not known yet.
struct PacketFlow {
  Flow* flow = nullptr;  // null: the packet belongs to no flow (DecodedPacket::has_flow)
  Direction direction = Direction::to_server;
  bool begins = false;       // the flow is new: it is kept only if the packet passes
  bool established = false;  // before this packet. TCP: handshake complete; others: both sides have sent
  bool icmp_error = false;   // the packet is an error message about the flow
};

/// Receives the tracker's output.
class PacketSink {
 public:
  virtual ~PacketSink() = default;
  /// Called for each packet, in order. If a frame yields several (tunnels), the outermost comes first.
  virtual void packet(TrackedPacket& packet) noexcept = 0;
  /// The last call for a flow: free any state kept for it. Packets with `stream_end` come before this call.
  virtual void flow_ended(Flow& flow) noexcept { static_cast<void>(flow); }
  /// A packet of this flow will probably follow soon: prefetch what the sink keeps for the flow.
  virtual void prefetch(const Flow& flow) const noexcept { static_cast<void>(flow); }
};

class Tracker {
 public:
  explicit Tracker(const TrackerOptions& options);
  ~Tracker();
  Tracker(const Tracker&) = delete;
  Tracker& operator=(const Tracker&) = delete;

  /// Prefetches what tracking the first kMostPrefetched of these frames will need. Changes nothing. Call it before the
  /// first of them is tracked.
  static constexpr std::size_t kMostPrefetched = 32;  // more would evict each other from the L1 cache
  void prefetch(std::span<const PacketView> frames, const PacketSink& sink) const noexcept;
  /// Tracks one frame. `number`: its position in the input, from 1.
  void track(PacketView packet, std::uint64_t number, PacketSink& sink) noexcept;
  /// The same for a fragment that another tracker tracks. The sink receives only the datagrams that it completes.
  void observe(PacketView packet, std::uint64_t number, PacketSink& sink) noexcept;
  /// Tracks one packet that was decoded elsewhere.
  void track(DecodedPacket& packet, PacketSink& sink) noexcept;

  /// Tracking in two steps, for functions that decide by flow. First, look_up() returns the flow of the frame's
  /// outermost packet without changing it. Fragments and tunnelled packets are not looked up. Valid until the next
  /// call.
  [[nodiscard]] PacketFlow look_up(PacketView packet, std::uint64_t number) noexcept;
  /// Second, pass() or drop() reports the verdict. pass() tracks the frame. If it starts a flow, that flow keeps the
  /// slots that were set.
  void pass(PacketSink& sink) noexcept;
  /// The frame was dropped: no flow or stream changes. If it would have started a flow and a slot of that flow was set,
  /// the sink's flow_ended() is called.
  void drop(PacketSink& sink) noexcept;

  /// Sets TrackerOptions::seam_bytes, for all streams, if it is more than before. Bytes that are no longer stored do
  /// not come back.
  void raise_seam(std::uint32_t bytes) noexcept;

  /// The last tracked frame was dropped. Later fragments of datagrams that it completed are refused
  /// (DecodedPacket::refused).
  void refuse_frame() noexcept;
  /// Ends everything that has timed out by `now_ns`, in packet time.
  void expire(std::uint64_t now_ns, PacketSink& sink) noexcept;
  /// End of input: ends all flows.
  void finish(PacketSink& sink) noexcept;

  [[nodiscard]] const TrackerCounters& counters() const noexcept;

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace penstock::stack
