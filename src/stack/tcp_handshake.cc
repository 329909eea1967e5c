// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// How sessions start: with a handshake, in mid-stream if enabled, or as a new connection between the endpoints of an
// older one. Contains the states none, syn_sent and syn_received (see tcp_states.cc).

#include "stack/tcp_handshake.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <new>

#include "base/nanoseconds.h"
#include "stack/tcp_tracker.h"

namespace penstock::stack {
namespace {

constexpr std::uint8_t kSynAck = TcpHeader::kSyn | TcpHeader::kAck;
constexpr std::uint8_t kUnknownScale = 14;  // handshake not seen: assume the largest window scale
/// If the ACK that completes a handshake is lost, the first segment after it may be this far ahead, in bytes.
constexpr std::int32_t kMostAhead = 1 << 20;

/// Whether `number` lies in [first, first + length].
bool in_window(std::uint32_t number, std::uint32_t first, std::int32_t length) noexcept {
  const std::int32_t ahead = sequence_distance(number, first);
  return ahead >= 0 && ahead <= length;
}

/// Whether the segment begins at or contains `byte`. Hosts trim the data before the byte that they expect.
template <typename Segment>
bool begins_or_has(const Segment& segment, std::uint32_t byte) noexcept {
  return segment.sequence == byte || (after(byte, segment.sequence) && after(segment.end(), byte));
}

/// Adds the segment. If the ring is full, this displaces the oldest entry and returns true.
template <typename Ring>
bool push(Ring& ring, const HandshakeSegment& segment) noexcept {
  const bool full = ring.count == ring.segments.size();
  if (full) std::rotate(ring.segments.begin(), ring.segments.begin() + 1, ring.segments.end());
  ring.segments[full ? ring.count - 1 : ring.count++] = segment;
  return full;
}

}  // namespace

// ---- Handshakes other than the session's own

/// Records the SYN or SYN/ACK in case the other host answers it. False if memory is full or an older one was displaced.
bool TcpTracker::note_handshake(Segment& segment) noexcept {
  TcpSession& session = *segment.session;
  const bool is_synack = segment.has(TcpHeader::kAck);
  if (session.handshakes_ == nullptr) {
    std::byte* const piece = session_memory_.take(Handshakes::kOrder);
    if (piece == nullptr) return false;
    session.handshakes_ = new (piece) Handshakes;
  }
  auto& ring = is_synack ? session.handshakes_->synacks : session.handshakes_->syns;
  for (std::uint32_t i = 0; i < ring.count; ++i) {
    HandshakeSegment& known = ring.segments[i];
    if (known.from == segment.direction && known.sequence == segment.sequence &&
        (is_synack ? known.ack == segment.ack : known.timestamp == segment.options.timestamp)) {
      return true;
    }
  }
  HandshakeSegment noted{.sequence = segment.sequence,
                         .ack = segment.ack,
                         .timestamp = segment.options.timestamp,
                         .echo = segment.options.echo,
                         .window = segment.window,
                         .scale = segment.options.window_scale,
                         .has_scale = segment.options.has_window_scale,
                         .has_timestamp = segment.options.has_timestamp,
                         .fast_open = segment.options.fast_open || (!is_synack && !segment.payload.empty()),
                         .from = segment.direction};
  if (options_.keep_streams && !is_synack && noted.fast_open && !segment.payload.empty())
    keep_data(noted, segment.payload);
  if (ring.count == ring.segments.size()) free_data(ring.segments[0]);
  return !push(ring, noted);
}

void TcpTracker::keep_data(HandshakeSegment& syn, Bytes data) noexcept {
  const unsigned order =
      std::max<unsigned>(MemoryPool::kSmallestOrder, static_cast<unsigned>(std::bit_width(data.size() - 1)));
  syn.data = stream_memory_.take(order);
  if (syn.data == nullptr) return;
  std::memcpy(syn.data, data.data(), data.size());
  syn.data_order = static_cast<std::uint8_t>(order);
  syn.data_length = static_cast<std::uint32_t>(data.size());
}

void TcpTracker::free_data(HandshakeSegment& syn) noexcept {
  if (syn.data != nullptr) stream_memory_.give(syn.data, syn.data_order);
  syn.data = nullptr;
  syn.data_length = 0;
}

void TcpTracker::free_handshakes(TcpSession& session) noexcept {
  if (session.handshakes_ == nullptr) return;
  Handshakes& handshakes = *session.handshakes_;
  for (std::uint32_t i = 0; i < handshakes.syns.count; ++i) free_data(handshakes.syns.segments[i]);
  handshakes.~Handshakes();
  session_memory_.give(reinterpret_cast<std::byte*>(session.handshakes_), Handshakes::kOrder);
  session.handshakes_ = nullptr;
}

/// Removes and returns the recorded SYN that this SYN/ACK answers. The caller must free its data.
std::optional<HandshakeSegment> TcpTracker::take_syn_answered_by(TcpSession& session,
                                                                 const HandshakeSegment& synack) noexcept {
  if (session.handshakes_ == nullptr) return std::nullopt;
  auto& ring = session.handshakes_->syns;
  for (std::uint32_t i = 0; i < ring.count; ++i) {
    HandshakeSegment& syn = ring.segments[i];
    if (syn.from == synack.from) continue;
    if (synack.ack != syn.sequence + 1 && synack.ack != syn.sequence + 1 + syn.data_length) continue;
    if (synack.echo != 0 && syn.has_timestamp && synack.echo != syn.timestamp) continue;
    HandshakeSegment taken = syn;
    if (synack.ack == syn.sequence + 1) taken.data_length = 0;  // the server did not accept the data
    syn.data = nullptr;
    syn.data_length = 0;
    return taken;
  }
  return std::nullopt;
}

/// Whether the open session started with this SYN/ACK.
bool TcpTracker::is_own(const TcpSession& session, const HandshakeSegment& synack) noexcept {
  if (session.state_ < TcpState::established || session.state_ == TcpState::closed) return false;
  return synack.sequence == session.stream(synack.from).isn &&
         synack.ack == session.stream(opposite(synack.from)).isn + 1;
}

/// The handshake that the packet completes. The caller must free its data.
std::optional<Handshake> TcpTracker::completed_by(TcpSession& session, Direction from, const Range& range,
                                                  std::uint32_t ack) noexcept {
  if (session.handshakes_ == nullptr) return std::nullopt;
  auto& ring = session.handshakes_->synacks;
  for (std::uint32_t i = ring.count; i-- > 0;) {
    const HandshakeSegment synack = ring.segments[i];
    if (synack.from == from) continue;
    const bool begins_there = in_window(range.sequence, synack.ack, kMostAhead) || range.has(synack.ack);
    if (!begins_there || ack != synack.sequence + 1) continue;
    if (is_own(session, synack)) continue;
    // This SYN/ACK answers another SYN/ACK as if that were a SYN. The ACK is a challenge ACK and completes no
    // handshake.
    const auto is_answered = [&](const HandshakeSegment& other) {
      return other.from == from && other.sequence + 1 == synack.ack;
    };
    const auto& syns = session.handshakes_->syns;
    if (std::any_of(ring.segments.begin(), ring.segments.begin() + ring.count, is_answered) &&
        std::none_of(syns.segments.begin(), syns.segments.begin() + syns.count, is_answered)) {
      continue;
    }
    // If the SYN was displaced, derive its sequence number and its options from the SYN/ACK.
    const HandshakeSegment unknown{.sequence = synack.ack - 1,
                                   .window = 0xffff,
                                   .scale = kUnknownScale,
                                   .has_scale = synack.has_scale,
                                   .has_timestamp = synack.has_timestamp,
                                   .from = from};
    std::copy(ring.segments.begin() + i + 1, ring.segments.begin() + ring.count, ring.segments.begin() + i);
    --ring.count;  // each SYN/ACK starts one session only
    return Handshake{.syn = take_syn_answered_by(session, synack).value_or(unknown), .synack = synack};
  }
  return std::nullopt;
}

// A host could make the tracker restart in mid-stream with an unsolicited SYN/ACK whose numbers fit the open session.
// So if they fit, the other host must have sent a SYN.
std::optional<Handshake> TcpTracker::begins_anew(Flow& flow, const DecodedPacket& packet,
                                                 Direction direction) noexcept {
  if (flow.tcp == nullptr || flow.tcp->handshakes_ == nullptr || flow.tcp->state_ < TcpState::established) {
    return std::nullopt;
  }
  const auto& header = *reinterpret_cast<const TcpHeader*>(packet.transport.data());
  if ((header.flags & (TcpHeader::kSyn | TcpHeader::kRst | TcpHeader::kAck)) != TcpHeader::kAck) return std::nullopt;
  const std::uint32_t sequence = header.sequence.value(), ack = header.acknowledgment.value();
  const auto is_near = [](std::uint32_t number, const TcpStream& stream) noexcept {
    const std::int32_t distance = sequence_distance(number, stream.next);
    return distance >= -kMostAhead && distance <= kMostAhead;
  };
  const auto& syns = flow.tcp->handshakes_->syns;
  const bool has_sent_syn = std::any_of(syns.segments.begin(), syns.segments.begin() + syns.count,
                                        [direction](const HandshakeSegment& syn) { return syn.from == direction; });
  if (!has_sent_syn && is_near(sequence, flow.tcp->stream(direction)) &&
      is_near(ack, flow.tcp->stream(opposite(direction)))) {
    return std::nullopt;
  }
  const std::uint32_t end = sequence + static_cast<std::uint32_t>(packet.payload.size());
  auto handshake = completed_by(*flow.tcp, direction, {sequence, end}, ack);
  // A SYN/ACK that reuses the sequence number of its sender's own SYN is part of a simultaneous open. The client stays
  // the client.
  if (handshake && handshake->synack.from == Direction::to_server &&
      handshake->synack.sequence == flow.tcp->stream(Direction::to_server).isn) {
    open_from_both_sides(*flow.tcp, *handshake);
    free_data(handshake->syn);
    flow.tcp->state_ = TcpState::syn_received;
    return std::nullopt;
  }
  return handshake;
}

/// A SYN alone is enough if only one direction is seen, or if the flow has no session yet.
bool TcpTracker::begins_by_syn(const Flow& flow, const DecodedPacket& packet, Direction direction) const noexcept {
  constexpr std::uint8_t kCongestion = 0xc0;  // CWR, ECE: RFC 3168 §6.1.1
  const auto& header = *reinterpret_cast<const TcpHeader*>(packet.transport.data());
  if ((header.flags & ~kCongestion) != TcpHeader::kSyn) return false;
  if (flow.tcp == nullptr) return true;
  if (!options_.async_oneside || flow.tcp->state_ < TcpState::last_ack) return false;
  return direction != Direction::to_server || flow.tcp->stream(direction).isn != header.sequence.value();
}

void TcpTracker::begin(Flow& flow, Handshake& handshake, std::uint64_t time_ns) noexcept {
  TcpOutcome outcome;
  Segment syn = segment_of(flow, handshake.syn, Direction::to_server, outcome, time_ns);
  if (start(syn) != nullptr) {
    TcpSession& session = *syn.session;
    session.flags_seen_ = {TcpHeader::kSyn, kSynAck};
    follow(syn, handshake.syn);
    Segment synack = segment_of(flow, handshake.synack, Direction::to_client, outcome, time_ns);
    synack.session = &session;
    take_synack(synack);
    set_state(synack, TcpState::syn_received);
  }
  free_data(handshake.syn);
}

TcpTracker::Segment TcpTracker::segment_of(Flow& flow, const HandshakeSegment& noted, Direction direction,
                                           TcpOutcome& outcome, std::uint64_t time_ns) noexcept {
  Segment segment{.flow = flow, .direction = direction, .outcome = outcome};
  segment.sequence = noted.sequence;
  segment.ack = noted.ack;
  segment.window = noted.window;
  segment.options = {.timestamp = noted.timestamp,
                     .window_scale = noted.scale,
                     .has_timestamp = noted.has_timestamp,
                     .has_window_scale = noted.has_scale,
                     .fast_open = noted.fast_open};
  segment.time_s = static_cast<std::uint32_t>(time_ns / kNsPerSecond);
  return segment;
}

/// Restarts the client's stream with this SYN. Discards the stream's previous state.
void TcpTracker::follow(Segment& segment, const HandshakeSegment& syn) noexcept {
  TcpSession& session = *segment.session;
  TcpStream& client = segment.client();
  clear(client);
  client.begin_at(syn.sequence);
  if (syn.has_timestamp) client.take_timestamp(syn.timestamp, segment.time_s);
  session.syn_timestamp_ = syn.timestamp;
  segment.server().window = syn.window;
  segment.server().scale = syn.scale;
  session.scales_ = syn.has_scale;
  session.fast_open_ = syn.fast_open;
  if (syn.data_length == 0) return;
  Segment data = segment;
  data.direction = Direction::to_server;
  client.next += syn.data_length;
  keep(data, syn.sequence + 1, {reinterpret_cast<const std::uint8_t*>(syn.data), syn.data_length});
}

/// Switches to a recorded handshake that the packet completes, before the session's own handshake completes.
bool TcpTracker::adopt(Segment& segment) noexcept {
  TcpSession& session = *segment.session;
  if (segment.has(TcpHeader::kSyn)) return false;
  auto handshake = completed_by(session, segment.direction, {segment.sequence, segment.end()}, segment.ack);
  if (!handshake) return false;
  session.evasion_ = session.begin_confirmed_ = false;
  if (segment.to_client()) {
    open_from_both_sides(session, *handshake);
  } else {
    const bool is_other = handshake->syn.sequence != session.stream(Direction::to_server).isn ||
                          (handshake->syn.timestamp != 0 && handshake->syn.timestamp != session.syn_timestamp_);
    if (is_other) follow(segment, handshake->syn);
    Segment synack = segment_of(segment.flow, handshake->synack, Direction::to_client, segment.outcome, 0);
    synack.session = &session;
    synack.time_s = segment.time_s;
    TcpStream& server = segment.server();
    const std::uint32_t window = server.window;
    const std::uint8_t scale = server.scale;
    clear(server);
    server.window = window;
    server.scale = scale;
    take_synack(synack);
  }
  free_data(handshake->syn);
  set_state(segment, TcpState::syn_received);
  return true;
}

/// Simultaneous open: the server answered the client's SYN with its own SYN, which the client answered (RFC 9293 §3.5,
/// figure 7).
void TcpTracker::open_from_both_sides(TcpSession& session, const Handshake& handshake) noexcept {
  for (TcpStream& stream : session.streams_) {
    const bool is_client = &stream == session.streams_.data();
    clear(stream);
    stream.begin_at(is_client ? handshake.synack.sequence : handshake.syn.sequence);
    stream.scale = kUnknownScale;
    stream.next_win = stream.last_ack;
    stream.grant(0xffffU << kUnknownScale);
  }
  session.four_way_ = true;
  session.timestamps_ = session.fast_open_ = false;
}

// ---- No session yet

bool TcpTracker::without_session(Segment& segment) noexcept {
  if (segment.has(TcpHeader::kRst)) return segment.refuse(TcpEvent::rst_without_session);
  if (segment.has(TcpHeader::kFin) && !(options_.midstream && !segment.payload.empty())) {
    return segment.refuse(TcpEvent::fin_without_session);
  }
  if (segment.has_all(kSynAck)) return pick_up_synack(segment);
  if (segment.has(TcpHeader::kSyn)) return take_syn(segment);
  if (segment.has(TcpHeader::kAck)) return pick_up_midstream(segment);
  return true;
}

bool TcpTracker::take_syn(Segment& segment) noexcept {
  if (start(segment) == nullptr) return false;
  TcpSession& session = *segment.session;
  TcpStream& client = segment.mine();
  set_state(segment, TcpState::syn_sent);
  session.async_ = options_.async_oneside;
  client.begin_at(segment.sequence);
  if (segment.options.has_timestamp) client.take_timestamp(segment.options.timestamp, segment.time_s);
  session.syn_timestamp_ = segment.options.timestamp;
  segment.other().window = segment.window;
  session.scales_ = segment.options.has_window_scale;
  segment.other().scale = segment.options.window_scale;
  // Data in the SYN does not require the option: a server may accept it without a cookie. Its SYN/ACK will show.
  if (segment.options.fast_open || !segment.payload.empty()) {
    session.fast_open_ = true;
    if (!segment.payload.empty()) {
      client.next += segment.length();
      take_segment(segment);
    }
  }
  return true;
}

// The SYN was not seen. Its sender, the receiver of the SYN/ACK, is the client.
bool TcpTracker::pick_up_synack(Segment& segment) noexcept {
  if (!options_.midstream && !options_.async_oneside) return true;
  if (start(segment) == nullptr) return false;
  TcpSession& session = *segment.session;
  if (segment.to_server()) {
    segment.outcome.reversed = true;
    std::swap(session.flags_seen_[0], session.flags_seen_[1]);
    segment.direction = Direction::to_client;
  }
  set_state(segment, TcpState::syn_received);
  session.midstream_ = true;
  session.midstream_synack_ = true;
  session.async_ = options_.async_oneside;
  TcpStream& server = segment.server();
  TcpStream& client = segment.client();
  server.begin_at(segment.sequence);
  client.begin_at(segment.ack - 1);
  server.scale = kUnknownScale;
  client.scale = segment.options.has_window_scale ? segment.options.window_scale : std::uint8_t{0};
  session.scales_ = segment.options.has_window_scale;
  client.grant(segment.window);
  server.grant(segment.window);
  if (segment.options.has_timestamp) {
    server.take_timestamp(segment.options.timestamp, segment.time_s);
    session.timestamps_ = true;
  }
  return true;
}

bool TcpTracker::pick_up_midstream(Segment& segment) noexcept {
  if (!options_.midstream) return true;
  if (start(segment) == nullptr) return false;
  TcpSession& session = *segment.session;
  set_state(segment, segment.has(TcpHeader::kFin) ? TcpState::fin_wait1 : TcpState::established);
  session.midstream_ = true;
  session.async_ = options_.async_oneside;
  session.confirmed_ = true;
  TcpStream& mine = segment.mine();
  TcpStream& other = segment.other();
  mine.begin_at(segment.sequence - 1);
  other.begin_at(segment.ack - 1);
  mine.scale = other.scale = kUnknownScale;
  mine.next = segment.end();
  mine.grant(segment.scaled_window());
  other.grant(segment.scaled_window());
  if (segment.options.has_timestamp) {
    mine.take_timestamp(segment.options.timestamp, segment.time_s);
    session.timestamps_ = true;
  }
  take_segment(segment);
  return true;
}

// ---- syn_sent

// Initialises both streams from an accepted SYN/ACK.
void TcpTracker::take_synack(Segment& segment) noexcept {
  TcpSession& session = *segment.session;
  TcpStream& server = segment.mine();
  TcpStream& client = segment.other();
  server.begin_at(segment.sequence);
  if (segment.options.has_timestamp && client.has_timestamp) {
    server.take_timestamp(segment.options.timestamp, segment.time_s);
    session.timestamps_ = true;
  } else {
    session.timestamps_ = false;
    client.zero_timestamp = false;
  }
  client.last_ack = segment.ack;
  session.scales_ = session.scales_ && segment.options.has_window_scale;
  client.scale = session.scales_ ? segment.options.window_scale : std::uint8_t{0};
  if (!session.scales_) server.scale = 0;  // RFC 7323 §2.2: both scale, or neither
  client.next_win = client.last_ack;
  client.grant(segment.window);
  server.next_win = server.last_ack;
  server.grant(server.window);
  session.four_way_ = false;
}

// RFC 7323 §3.2: TSecr must be the TSval of a SYN. Otherwise the client resets the connection (as Linux does), except
// if it is 0.
bool TcpTracker::echo_fits(const Segment& synack) noexcept {
  const TcpSession& session = *synack.session;
  const TcpStream& client = synack.other();
  if (!client.has_timestamp || !synack.options.has_timestamp || synack.options.echo == 0) return true;
  return not_before(synack.options.echo, session.syn_timestamp_) && not_after(synack.options.echo, client.timestamp);
}

bool TcpTracker::syn_sent(Segment& segment) noexcept {
  if (segment.has(TcpHeader::kRst)) return rst_in_syn_sent(segment);
  if (segment.has(TcpHeader::kFin)) return true;
  if (segment.has_all(kSynAck)) return segment.to_server() ? synack_of_four(segment) : synack_in_syn_sent(segment);
  if (segment.has(TcpHeader::kSyn)) return syn_in_syn_sent(segment);
  if (!segment.has(TcpHeader::kAck)) return true;
  if (adopt(segment)) return syn_received(segment);
  return !options_.async_oneside || establish_one_side(segment);
}

bool TcpTracker::rst_in_syn_sent(Segment& segment) noexcept {
  const TcpStream& client = segment.client();
  if (!rst_valid(segment)) return false;
  // A client's RST aborts its SYN only if it has the SYN's sequence number and acknowledges the SYN.
  if (segment.to_server() &&
      !(segment.sequence == client.isn && segment.window == 0 && segment.ack == client.isn + 1)) {
    return true;
  }
  segment.outcome.reset = true;
  set_state(segment, TcpState::closed);
  return true;
}

bool TcpTracker::syn_in_syn_sent(Segment& segment) noexcept {
  TcpSession& session = *segment.session;
  TcpStream& client = segment.client();
  TcpStream& server = segment.server();
  if (segment.to_client()) {  // simultaneous open
    session.four_way_ = true;
    server.begin_at(segment.sequence);
    if (segment.options.has_timestamp) server.take_timestamp(segment.options.timestamp, segment.time_s);
    client.window = segment.window;
    client.scale = session.scales_ ? segment.options.window_scale : std::uint8_t{0};
    session.scales_ = session.scales_ && segment.options.has_window_scale;
    return true;
  }
  if (segment.sequence != client.isn) {
    return note_handshake(segment) || segment.refuse(TcpEvent::h3_syn_flood);
  }
  // A retransmitted SYN: the SYN/ACK may echo its timestamp.
  if (segment.options.has_timestamp && after(segment.options.timestamp, client.timestamp)) {
    client.timestamp = segment.options.timestamp;
  } else if (segment.options.has_timestamp && segment.options.timestamp != client.timestamp) {
    note_handshake(segment);
  }
  return true;
}

bool TcpTracker::synack_of_four(Segment& segment) noexcept {
  TcpSession& session = *segment.session;
  TcpStream& client = segment.client();
  TcpStream& server = segment.server();
  if (!session.four_way_) return segment.refuse(TcpEvent::h3_synack_in_wrong_direction);
  if (segment.ack != server.isn + 1) return segment.refuse(TcpEvent::h4_synack_with_wrong_ack);
  if (segment.sequence != client.isn) return segment.refuse(TcpEvent::h4_synack_with_wrong_syn);
  set_state(segment, TcpState::syn_received);
  client.begin_at(segment.sequence);
  if (segment.options.has_timestamp && server.has_timestamp) {
    client.take_timestamp(segment.options.timestamp, segment.time_s);
    session.timestamps_ = true;
  } else {
    session.timestamps_ = false;
  }
  server.scale = session.scales_ && segment.options.has_window_scale ? segment.options.window_scale : std::uint8_t{0};
  server.last_ack = segment.ack;
  server.grant(segment.window);
  client.next_win = client.last_ack;
  client.grant(client.window);
  return true;
}

bool TcpTracker::synack_in_syn_sent(Segment& segment) noexcept {
  TcpSession& session = *segment.session;
  TcpStream& client = segment.client();
  // The SYN/ACK does not seem to be the one that the client expects. If it is, the client's ACK will show that.
  const auto refuse = [&](TcpEvent event) noexcept {
    note_handshake(segment);
    return segment.refuse(event);
  };
  if (segment.ack != client.isn + 1 && segment.ack != client.next) {
    auto syn =
        take_syn_answered_by(session, {.ack = segment.ack, .echo = segment.options.echo, .from = Direction::to_client});
    if (!syn) return refuse(TcpEvent::h3_synack_with_wrong_ack);
    follow(segment, *syn);
    free_data(*syn);
  }
  if (!echo_fits(segment)) return refuse(TcpEvent::invalid_timestamp);
  if (!session.fast_open_) {
    if (segment.ack != client.isn + 1) return refuse(TcpEvent::h3_synack_with_wrong_ack);
    take_synack(segment);
    set_state(segment, TcpState::syn_received);
    return true;
  }
  const bool carried_data = client.next != client.isn + 1;
  if (segment.ack == client.next) {
    take_synack(segment);
    set_state(segment, carried_data ? TcpState::established : TcpState::syn_received);
  } else if (segment.ack == client.isn + 1) {
    // The server accepted the SYN but not its data, which the client will retransmit.
    segment.tell(TcpEvent::h3_synack_ignores_fast_open_data);
    client.buffer.clear(stream_memory_);
    client.next = client.isn + 1;
    client.inspected = client.latest_begin = client.latest_end = 0;
    ++client.beginnings;
    session.fast_open_ = false;
    take_synack(segment);
    set_state(segment, TcpState::syn_received);
  } else {
    return refuse(TcpEvent::h3_synack_with_wrong_ack);
  }
  if (!segment.payload.empty()) {
    segment.server().next += segment.length();
    take_segment(segment);
  }
  return true;
}

// Establishes a session of which only the client's direction is seen.
bool TcpTracker::establish_one_side(Segment& segment) noexcept {
  TcpSession& session = *segment.session;
  TcpStream& client = segment.client();
  TcpStream& server = segment.server();
  if (segment.sequence != client.next) return segment.refuse(TcpEvent::h3_async_wrong_sequence);
  session.async_ = true;
  set_state(segment, TcpState::established);
  server.begin_at(segment.ack - 1);
  client.last_ack = segment.sequence;
  client.next = segment.end();
  server.grant(segment.scaled_window());
  client.grant(segment.scaled_window());
  if (segment.options.has_timestamp && client.has_timestamp) {
    session.timestamps_ = true;
    note_timestamp(segment);
  }
  take_segment(segment);
  return true;
}

// ---- syn_received

bool TcpTracker::syn_received(Segment& segment) noexcept {
  TcpSession& session = *segment.session;
  if (segment.has(TcpHeader::kRst)) {
    if (!rst_valid(segment)) return false;
    // After a wrong handshake ACK, hosts with these policies ignore this RST.
    const bool ignored =
        session.evasion_ && segment.to_server() &&
        (options_.stream_policy == OverlapPolicy::linux_host || options_.stream_policy == OverlapPolicy::solaris);
    if (ignored) return true;
    segment.outcome.reset = true;
    set_state(segment, TcpState::closed);
    note_timestamp(segment);
    return true;
  }
  if (segment.has_all(kSynAck)) return synack_in_syn_received(segment);
  if (segment.has(TcpHeader::kSyn)) return syn_in_syn_received(segment);
  if (segment.has(TcpHeader::kFin)) {
    // Hosts answer an ACK of data that they never sent with a RST, and continue.
    const bool acks_more =
        segment.to_server() && segment.has(TcpHeader::kAck) && after(segment.ack, segment.server().next);
    if (acks_more) return segment.refuse(TcpEvent::h3_right_sequence_wrong_ack);
    return timestamp_valid(segment) && take_fin(segment);
  }
  if (!segment.has(TcpHeader::kAck)) return true;
  const bool is_of_this =
      segment.to_server() && begins_or_has(segment, segment.client().next) && segment.ack == segment.server().next;
  if (!is_of_this) adopt(segment);
  return timestamp_valid(segment) && complete_handshake(segment);
}

bool TcpTracker::synack_in_syn_received(Segment& segment) noexcept {
  const bool is_again = segment.ack == segment.other().last_ack && segment.sequence == segment.mine().isn;
  if (!is_again) {
    const bool displaced = !note_handshake(segment);
    if (displaced && segment.to_client()) segment.tell(TcpEvent::h3_synack_flood);
    if (displaced) return false;
  }
  if (segment.to_server() && !segment.session->four_way_) {
    return segment.refuse(TcpEvent::h3_synack_to_server_on_syn_received);
  }
  if (segment.ack != segment.other().last_ack) {
    return segment.refuse(TcpEvent::h3_synack_resend_with_different_ack);
  }
  if (segment.sequence != segment.mine().isn && segment.to_server()) {
    return segment.refuse(TcpEvent::h3_synack_resend_with_different_sequence);
  }
  return true;
}

bool TcpTracker::syn_in_syn_received(Segment& segment) noexcept {
  if (segment.sequence != segment.mine().isn) note_handshake(segment);
  if (segment.to_client()) return segment.refuse(TcpEvent::h3_syn_to_client_on_syn_received);
  if (segment.sequence != segment.client().isn) {
    return segment.refuse(TcpEvent::h3_syn_resend_with_different_sequence);
  }
  return true;
}

bool TcpTracker::complete_handshake(Segment& segment) noexcept {
  TcpSession& session = *segment.session;
  TcpStream& client = segment.client();
  TcpStream& server = segment.server();
  if (session.four_way_ && segment.to_client()) {
    if (!in_window(segment.sequence, server.next, kMostAhead)) return segment.refuse(TcpEvent::h4_wrong_sequence);
    if (!ack_valid(segment)) return segment.refuse(TcpEvent::h4_invalid_ack);
    note_timestamp(segment);
    advance(server.next, segment.end());
    client.acknowledge(segment.ack);
    client.grant(segment.scaled_window());
    set_state(segment, TcpState::established);
    take_segment(segment);
    return true;
  }

  bool missed_ack = false;
  if (segment.to_client() && !session.midstream_synack_ && !session.fast_open_) {
    if (options_.inline_streams) {
      // Inline sees all packets, so the client cannot have answered unseen. Data right after the SYN/ACK may be
      // injected.
      const bool fits = !segment.payload.empty() && segment.ack == client.last_ack && segment.sequence == server.next;
      return segment.refuse(fits ? TcpEvent::h3_data_injected : TcpEvent::h3_ack_in_wrong_direction);
    }
    missed_ack = true;
  }
  TcpStream& mine = segment.mine();
  TcpStream& other = segment.other();
  const auto establish = [&]() noexcept {
    note_timestamp(segment);
    advance(mine.next, segment.end());
    other.acknowledge(segment.ack);
    other.grant(segment.scaled_window());
    set_state(segment, TcpState::established);
    take_segment(segment);
    return true;
  };
  if (segment.to_server() && (begins_or_has(segment, client.next) || is_early(segment)) && segment.ack == server.next) {
    if (session.midstream_) {
      // The client's window scale was in the SYN, which was not seen.
      client.next_win = client.last_ack + (client.window << client.scale);
    }
    return establish();
  }
  if (options_.async_oneside && segment.to_client() && segment.sequence == server.next) {
    session.async_ = true;
    server.last_ack = segment.sequence;
    return establish();
  }
  if (segment.to_server() && segment.sequence == client.next) {
    session.evasion_ = true;
    return segment.refuse(TcpEvent::h3_right_sequence_wrong_ack);
  }
  if ((missed_ack || session.fast_open_ || session.midstream_synack_) && segment.to_client() &&
      segment.ack == client.last_ack && segment.sequence == server.next) {
    return establish();
  }
  // Packets were lost: the client's ACK before this packet of the server, or packets of the client.
  if (segment.to_client() && !options_.inline_streams && not_before(segment.sequence, server.next) &&
      after(segment.ack, client.last_ack) && not_after(segment.ack, client.next_win)) {
    return establish();
  }
  if (segment.to_server() && after(segment.sequence, client.next) && not_after(segment.sequence, client.next_win) &&
      segment.ack == server.next) {
    return establish();
  }
  return segment.refuse(TcpEvent::h3_wrong_sequence_wrong_ack);
}

}  // namespace penstock::stack
