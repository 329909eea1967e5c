// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Updates a TCP session for each packet: handshakes (tcp_handshake.cc), the state machine (tcp_states.cc), segment
// validation (tcp_checks.cc), and stream reassembly (tcp_tracker.cc). Modelled on Suricata's stream engine and sets the
// same events. Unlike Suricata, it treats a session as closed, and bytes as final, only once the receiver confirms it.

#pragma once

#include <cstdint>
#include <optional>

#include "packet/transport.h"
#include "stack/flow.h"
#include "stack/memory_pool.h"
#include "stack/stream_event.h"
#include "stack/tcp_handshake.h"
#include "stack/tcp_options.h"
#include "stack/tcp_session.h"
#include "stack/tracker_options.h"

namespace penstock::stack {

/// The effect of one packet on its session.
struct TcpOutcome {
  StreamEvents events;
  bool payload_in_stream = false;
  bool different = false;        // overlaps earlier data with different content
  bool invalid = false;          // inline: must be dropped, because the session does not accept it
  bool reversed = false;         // client and server turned out to be swapped
  bool reset = false;            // closed the session with a RST
  bool session_refused = false;  // no memory for a new session
  bool bytes_refused = false;    // no memory for its payload in the stream
  bool early = false;            // data before ISN + 1, which a server with SYN cookies may accept
};

class TcpTracker {
 public:
  TcpTracker(const TrackerOptions& options, MemoryPool& sessions, MemoryPool& streams, TrackerCounters& counters)
      : options_(options), session_memory_(sessions), stream_memory_(streams), counters_(counters) {}

  /// Updates the flow's state and its session, and creates a session if the packet starts one. `packet` must be a TCP
  /// packet of `flow`.
  TcpOutcome track(Flow& flow, const DecodedPacket& packet, Direction direction) noexcept;

  /// A quick test for whether the packet could start a new connection that replaces the flow. begins_anew() and
  /// begins_by_syn() decide.
  [[nodiscard]] static bool may_begin_another(const Flow& flow, const DecodedPacket& packet) noexcept {
    const auto& header = *reinterpret_cast<const TcpHeader*>(packet.transport.data());
    return (header.flags & TcpHeader::kSyn) != 0 || (flow.tcp != nullptr && flow.tcp->handshakes_ != nullptr);
  }
  /// Whether the packet is a SYN that starts a new connection, which replaces the flow with the same endpoints.
  [[nodiscard]] bool begins_by_syn(const Flow& flow, const DecodedPacket& packet, Direction direction) const noexcept;
  /// If the packet completes the handshake of a new connection that replaces the flow's, returns that handshake. The
  /// caller must pass it to `begin` or `abandon`, which free its data.
  [[nodiscard]] std::optional<Handshake> begins_anew(Flow& flow, const DecodedPacket& packet,
                                                     Direction direction) noexcept;
  /// Creates a session for the flow that waits for the final ACK of the handshake. The flow's client must be the sender
  /// of the SYN. Creates no session when session memory is full.
  void begin(Flow& flow, Handshake& handshake, std::uint64_t time_ns) noexcept;
  /// Frees the handshake's data. Call instead of `begin` if no flow could be created.
  void abandon(Handshake& handshake) noexcept { free_data(handshake.syn); }

  /// Whether stream data of this direction should be inspected along with the current packet of the same direction.
  [[nodiscard]] bool stream_ready(const TcpSession& session, Direction direction,
                                  bool payload_in_stream) const noexcept;
  /// Whether this direction has data that was never inspected, acknowledged or not.
  [[nodiscard]] static bool has_uninspected(const TcpSession& session, Direction direction) noexcept;
  /// Marks the data that was ready as inspected, even if no function read it, and then frees data that is no longer
  /// needed. `before`: the stream's progress before the functions saw the packet.
  void settle(TcpSession& session, Direction direction, bool ready, bool to_end,
              const TcpStream::Progress& before) noexcept;
  /// Frees the flow's session and its stream data.
  void release(Flow& flow) noexcept;

  static constexpr unsigned kSessionOrder = 9;

 private:
  struct Segment;  // the packet and its session

  static constexpr std::uint32_t kTimestampAge = 24 * 24 * 3600;  // seconds; RFC 7323 §5.5: older values are invalid

  // Fast path for the expected next segment; track_checked() handles all others.
  [[nodiscard]] bool is_expected(const Segment& segment) const noexcept;
  static bool timestamp_goes_on(const Segment& segment) noexcept;
  void take_expected(Segment& segment) noexcept;
  void track_checked(Segment& segment) noexcept;

  TcpSession* start(Segment& segment) noexcept;
  void set_state(Segment& segment, TcpState state) noexcept;

  // Handshakes other than the session's own.
  bool note_handshake(Segment& segment) noexcept;
  void keep_data(HandshakeSegment& syn, Bytes data) noexcept;
  void free_data(HandshakeSegment& syn) noexcept;
  void free_handshakes(TcpSession& session) noexcept;
  static std::optional<HandshakeSegment> take_syn_answered_by(TcpSession& session,
                                                              const HandshakeSegment& synack) noexcept;
  static bool is_own(const TcpSession& session, const HandshakeSegment& synack) noexcept;
  /// Sequence numbers of a segment's payload.
  struct Range {
    std::uint32_t sequence, end;
    /// Whether `byte` lies strictly inside the range: after its first byte and before its end.
    [[nodiscard]] bool has(std::uint32_t byte) const noexcept { return after(byte, sequence) && after(end, byte); }
  };
  static std::optional<Handshake> completed_by(TcpSession& session, Direction from, const Range& range,
                                               std::uint32_t ack) noexcept;
  static Segment segment_of(Flow& flow, const HandshakeSegment& noted, Direction direction, TcpOutcome& outcome,
                            std::uint64_t time_ns) noexcept;
  void follow(Segment& segment, const HandshakeSegment& syn) noexcept;
  bool adopt(Segment& segment) noexcept;
  void open_from_both_sides(TcpSession& session, const Handshake& handshake) noexcept;

  // State functions. They return false if the packet is not valid in the state.
  bool in_state(Segment& segment, TcpState state) noexcept;
  bool without_session(Segment& segment) noexcept;
  bool syn_sent(Segment& segment) noexcept;
  bool syn_received(Segment& segment) noexcept;
  bool established(Segment& segment) noexcept;
  bool fin_wait1(Segment& segment) noexcept;
  bool fin_wait2(Segment& segment) noexcept;
  bool closing(Segment& segment) noexcept;
  bool close_wait(Segment& segment) noexcept;
  bool last_ack(Segment& segment) noexcept;
  bool time_wait(Segment& segment) noexcept;
  bool closed(Segment& segment) noexcept;

  bool take_syn(Segment& segment) noexcept;
  bool pick_up_synack(Segment& segment) noexcept;
  bool pick_up_midstream(Segment& segment) noexcept;
  void take_synack(Segment& segment) noexcept;
  static bool echo_fits(const Segment& synack) noexcept;
  bool rst_in_syn_sent(Segment& segment) noexcept;
  bool syn_in_syn_sent(Segment& segment) noexcept;
  bool synack_in_syn_sent(Segment& segment) noexcept;
  bool synack_of_four(Segment& segment) noexcept;
  bool establish_one_side(Segment& segment) noexcept;
  bool synack_in_syn_received(Segment& segment) noexcept;
  bool syn_in_syn_received(Segment& segment) noexcept;
  bool complete_handshake(Segment& segment) noexcept;
  bool established_data(Segment& segment) noexcept;
  bool take_fin(Segment& segment) noexcept;
  bool take_rst(Segment& segment) noexcept;
  /// Checks common to all shutdown states. Returns whether the packet is valid if that needs no further processing;
  /// otherwise nullopt.
  std::optional<bool> judge_before_shutdown(Segment& segment) noexcept;
  void finish_shutdown_step(Segment& segment, bool retransmission) noexcept;
  void close_if_confirmed(Segment& segment) noexcept;

  // Checks.
  bool timestamp_valid(Segment& segment) noexcept;
  static void note_timestamp(Segment& segment) noexcept;
  bool ack_valid(Segment& segment) noexcept;
  bool rst_valid(Segment& segment) noexcept;
  static bool is_retransmission(Segment& segment) noexcept;
  static bool is_keep_alive(Segment& segment) noexcept;
  static bool is_early(const Segment& segment) noexcept;
  void begin_earlier(TcpStream& stream, std::uint32_t sequence) noexcept;
  static bool is_keep_alive_ack(const Segment& segment) noexcept;
  static bool is_window_update(const Segment& segment) noexcept;
  static bool is_shutdown_ack(const Segment& segment) noexcept;
  static bool is_bad_window_update(Segment& segment) noexcept;
  static bool is_outdated_ack(const Segment& segment) noexcept;
  static bool fin_fits(const Segment& segment) noexcept;
  static bool may_pass(const Segment& segment, bool valid) noexcept;

  // Streams.
  void take_segment(Segment& segment) noexcept;
  void take_data(Segment& segment) noexcept;
  /// Adds data to the stream. False: the data was not added.
  bool keep(Segment& segment, std::uint32_t sequence, Bytes data) noexcept;
  void refuse_bytes(Segment& segment) noexcept;
  bool keep_inline(Segment& segment, std::uint64_t from, Bytes data) noexcept;
  bool keep_passive(Segment& segment, std::uint64_t from, Bytes data) noexcept;
  [[nodiscard]] static StreamBuffer::Range missing_before_inspected(const TcpStream& stream,
                                                                    StreamBuffer::Range range) noexcept;
  void note_refused_data(Segment& segment) noexcept;
  void contest(TcpStream& stream, std::uint64_t offset, Bytes bytes, ContestedBytes::Kind kind) noexcept;
  bool contest_those_there(TcpStream& stream, std::uint64_t offset, Bytes bytes) noexcept;
  void mark_urgent(Segment& segment) noexcept;
  void follow_acknowledgment(Segment& segment) noexcept;
  void clear(TcpStream& stream) noexcept;
  void look_for_gaps(Segment& segment, TcpStream& stream) noexcept;
  void watch(TcpSession& session, Direction direction) noexcept;

  const TrackerOptions& options_;
  MemoryPool& session_memory_;
  MemoryPool& stream_memory_;
  TrackerCounters& counters_;
};

/// The packet and its session, seen from the sender.
struct TcpTracker::Segment {
  Flow& flow;
  Direction direction;
  TcpOutcome& outcome;
  TcpSession* session = nullptr;

  std::uint32_t sequence = 0;
  std::uint32_t ack = 0;
  std::uint16_t window = 0;
  std::uint16_t urgent = 0;
  std::uint8_t flags = 0;
  Bytes payload{};
  TcpOptions options{};
  std::uint32_t time_s = 0;

  [[nodiscard]] bool has(std::uint8_t flag) const noexcept { return (flags & flag) != 0; }
  [[nodiscard]] bool has_all(std::uint8_t wanted) const noexcept { return (flags & wanted) == wanted; }
  [[nodiscard]] bool to_server() const noexcept { return direction == Direction::to_server; }
  [[nodiscard]] bool to_client() const noexcept { return direction == Direction::to_client; }
  [[nodiscard]] std::uint32_t length() const noexcept { return static_cast<std::uint32_t>(payload.size()); }
  [[nodiscard]] std::uint32_t end() const noexcept { return sequence + length(); }
  /// mine(): the stream that the packet's sender sends. other(): the stream that it receives.
  [[nodiscard]] TcpStream& mine() const noexcept { return session->streams_[static_cast<std::size_t>(direction)]; }
  [[nodiscard]] TcpStream& other() const noexcept {
    return session->streams_[static_cast<std::size_t>(opposite(direction))];
  }
  [[nodiscard]] TcpStream& client() const noexcept { return session->streams_[0]; }
  [[nodiscard]] TcpStream& server() const noexcept { return session->streams_[1]; }
  /// The receive window that the sender advertises, in bytes.
  [[nodiscard]] std::uint32_t scaled_window() const noexcept {
    return static_cast<std::uint32_t>(window) << other().scale;
  }
  void tell(TcpEvent event) const noexcept { outcome.events.set(static_cast<std::size_t>(event)); }
  /// Sets the event that says why the packet is invalid. Always false.
  [[nodiscard]] bool refuse(TcpEvent event) const noexcept {
    tell(event);
    return false;
  }
  /// No payload and none of SYN, FIN, RST.
  [[nodiscard]] bool is_bare() const noexcept {
    return payload.empty() && !has(TcpHeader::kSyn | TcpHeader::kFin | TcpHeader::kRst);
  }
};

}  // namespace penstock::stack
