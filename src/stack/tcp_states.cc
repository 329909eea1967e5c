// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// RFC 9293's states as one between the hosts sees them: of the connection, not of a host. `fin_wait1`: the server's FIN
// came first; `close_wait`: the client's did.
//
//     none ─SYN▶ syn_sent ─SYN/ACK▶ syn_received ─ACK▶ established ─FIN of the server▶ fin_wait1 ─ACK▶ fin_wait2
//                                                          │FIN of the client             │FIN         │FIN
//                                                          ▼                              ▼            ▼
//                                                      close_wait ─FIN▶ last_ack      time_wait ─ACK▶ closed
//
// Each function tells whether the packet is valid in the state. Data of packets that are not never reach a stream.

#include <algorithm>
#include <new>

#include "stack/tcp_tracker.h"

namespace penstock::stack {

struct QueuedSyns {
  struct Entry {
    std::uint32_t sequence = 0, ack = 0, timestamp = 0;
    std::uint16_t window = 0;
    std::uint8_t scale = 0;
    bool has_scale = false, has_timestamp = false;
  };
  static constexpr std::size_t kMost = 5;  // Suricata's max-synack-queued
  std::array<Entry, kMost> entries;
  std::uint32_t count = 0;
};

namespace {

constexpr std::uint8_t kSynAck = TcpHeader::kSyn | TcpHeader::kAck;
constexpr unsigned kQueueOrder = 8;
static_assert(sizeof(QueuedSyns) <= std::size_t{1} << kQueueOrder);
constexpr std::uint8_t kUnknownScale = 14;  // of sessions whose handshake was not seen: any window will do

void begin_at(TcpStream& stream, std::uint32_t isn) noexcept {
  stream.isn = isn;
  stream.base = isn + 1;
  stream.base_offset = 0;
  stream.next = isn + 1;
  stream.last_ack = isn + 1;
}

void advance(std::uint32_t& value, std::uint32_t to) noexcept {
  if (after(to, value)) value = to;
}

void take_timestamp(TcpStream& stream, std::uint32_t timestamp, std::uint32_t time_s) noexcept {
  stream.timestamp = timestamp;
  stream.timestamp_s = time_s;
  stream.zero_timestamp = timestamp == 0;
  stream.has_timestamp = true;
}

void grant(TcpStream& stream, std::uint32_t window) noexcept {
  stream.window = window;
  advance(stream.next_win, stream.last_ack + window);
}

}  // namespace

void TcpTracker::set_state(Segment& segment, TcpState state) noexcept {
  TcpSession& session = *segment.session;
  if (state == session.state_) return;
  session.state_before_ = session.state_;
  session.state_ = state;
  switch (state) {
    case TcpState::established:
    case TcpState::fin_wait1:
    case TcpState::fin_wait2:
    case TcpState::closing:
    case TcpState::close_wait: segment.flow.state = FlowState::established; break;
    case TcpState::last_ack:
    case TcpState::time_wait:
    case TcpState::closed: segment.flow.state = FlowState::closed; break;
    default: break;
  }
}

bool TcpTracker::in_state(Segment& segment, TcpState state) noexcept {
  switch (state) {
    case TcpState::none: return without_session(segment);
    case TcpState::syn_sent: return syn_sent(segment);
    case TcpState::syn_received: return syn_received(segment);
    case TcpState::established: return established(segment);
    case TcpState::fin_wait1: return fin_wait1(segment);
    case TcpState::fin_wait2: return fin_wait2(segment);
    case TcpState::time_wait: return time_wait(segment);
    case TcpState::last_ack: return last_ack(segment);
    case TcpState::close_wait: return close_wait(segment);
    case TcpState::closing: return closing(segment);
    case TcpState::closed: return closed(segment);
  }
  return false;
}

// ---- The handshake

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
  begin_at(client, segment.sequence);
  if (segment.options.has_timestamp) take_timestamp(client, segment.options.timestamp, segment.time_s);
  segment.other().window = segment.window;
  session.scales_ = segment.options.has_window_scale;
  segment.other().scale = segment.options.window_scale;
  if (segment.options.fast_open) {
    session.fast_open_ = true;
    if (!segment.payload.empty()) {
      client.next += segment.length();
      take_segment(segment);
    }
  }
  return true;
}

// The SYN was not seen; its sender is the client all the same.
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
  begin_at(server, segment.sequence);
  begin_at(client, segment.ack - 1);
  server.scale = kUnknownScale;
  client.scale = segment.options.has_window_scale ? segment.options.window_scale : std::uint8_t{0};
  session.scales_ = segment.options.has_window_scale;
  grant(client, segment.window);
  grant(server, segment.window);
  if (segment.options.has_timestamp) {
    take_timestamp(server, segment.options.timestamp, segment.time_s);
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
  begin_at(mine, segment.sequence - 1);
  begin_at(other, segment.ack - 1);
  mine.scale = other.scale = kUnknownScale;
  mine.next = segment.end();
  grant(mine, segment.scaled_window());
  grant(other, segment.scaled_window());
  if (segment.options.has_timestamp) {
    take_timestamp(mine, segment.options.timestamp, segment.time_s);
    session.timestamps_ = true;
  }
  take_segment(segment);
  return true;
}

// What a SYN/ACK that is accepted says of the server, and of the client.
void TcpTracker::take_synack(Segment& segment) noexcept {
  TcpSession& session = *segment.session;
  TcpStream& server = segment.mine();
  TcpStream& client = segment.other();
  begin_at(server, segment.sequence);
  if (segment.options.has_timestamp && client.has_timestamp) {
    take_timestamp(server, segment.options.timestamp, segment.time_s);
    session.timestamps_ = true;
  } else {
    session.timestamps_ = false;
    client.zero_timestamp = false;
  }
  client.last_ack = segment.ack;
  client.scale = session.scales_ && segment.options.has_window_scale ? segment.options.window_scale : std::uint8_t{0};
  client.next_win = client.last_ack;
  grant(client, segment.window);
  server.next_win = server.last_ack;
  grant(server, server.window);
  session.four_way_ = false;
}

bool TcpTracker::queue_syn(Segment& segment, TcpEvent flood) noexcept {
  TcpSession& session = *segment.session;
  if (session.queued_ == nullptr) {
    std::byte* const piece = session_memory_.take(kQueueOrder);
    if (piece == nullptr) return false;
    session.queued_ = new (piece) QueuedSyns;
  }
  QueuedSyns& queue = *session.queued_;
  for (std::uint32_t i = 0; i < queue.count; ++i) {
    if (queue.entries[i].sequence == segment.sequence && queue.entries[i].ack == segment.ack) return true;
  }
  if (queue.count == QueuedSyns::kMost) return segment.refuse(flood);
  queue.entries[queue.count++] = {.sequence = segment.sequence,
                                  .ack = segment.ack,
                                  .timestamp = segment.options.timestamp,
                                  .window = segment.window,
                                  .scale = segment.options.window_scale,
                                  .has_scale = segment.options.has_window_scale,
                                  .has_timestamp = segment.options.has_timestamp};
  return true;
}

void TcpTracker::free_queue(TcpSession& session) noexcept {
  if (session.queued_ == nullptr) return;
  session.queued_->~QueuedSyns();
  session_memory_.give(reinterpret_cast<std::byte*>(session.queued_), kQueueOrder);
  session.queued_ = nullptr;
}

// The client's ACK tells which of the SYN/ACKs it took.
void TcpTracker::adopt_queued_synack(Segment& segment) noexcept {
  TcpSession& session = *segment.session;
  if (session.queued_ == nullptr || !segment.to_server()) return;
  for (std::uint32_t i = 0; i < session.queued_->count; ++i) {
    const QueuedSyns::Entry entry = session.queued_->entries[i];
    if (entry.sequence + 1 != segment.ack || segment.ack == session.stream(Direction::to_client).next) continue;
    Segment synack = segment;
    synack.direction = Direction::to_client;
    synack.sequence = entry.sequence;
    synack.ack = entry.ack;
    synack.window = entry.window;
    synack.options = {.timestamp = entry.timestamp,
                      .window_scale = entry.scale,
                      .has_timestamp = entry.has_timestamp,
                      .has_window_scale = entry.has_scale};
    take_synack(synack);
    break;
  }
  free_queue(session);
}

// The server's SYN/ACK tells which of the SYNs it took.
bool TcpTracker::adopt_queued_syn(Segment& segment) noexcept {
  TcpSession& session = *segment.session;
  if (session.queued_ == nullptr) return false;
  for (std::uint32_t i = 0; i < session.queued_->count; ++i) {
    const QueuedSyns::Entry entry = session.queued_->entries[i];
    if (entry.sequence + 1 != segment.ack) continue;
    TcpStream& client = segment.client();
    client.buffer.clear(stream_memory_);
    begin_at(client, entry.sequence);
    client.has_timestamp = entry.has_timestamp;
    if (entry.has_timestamp) take_timestamp(client, entry.timestamp, segment.time_s);
    segment.server().window = entry.window;
    segment.server().scale = entry.scale;
    session.scales_ = entry.has_scale;
    return true;
  }
  return false;
}

bool TcpTracker::syn_sent(Segment& segment) noexcept {
  TcpSession& session = *segment.session;
  TcpStream& client = segment.client();
  TcpStream& server = segment.server();
  if (segment.has(TcpHeader::kRst)) {
    if (!rst_valid(segment)) return false;
    // The client takes back its SYN in one way only: by an ACK of it, from where it was.
    if (segment.to_server() &&
        !(segment.sequence == client.isn && segment.window == 0 && segment.ack == client.isn + 1)) {
      return true;
    }
    segment.outcome.reset = true;
    set_state(segment, TcpState::closed);
    take_segment(segment);
    return true;
  }
  if (segment.has(TcpHeader::kFin)) return true;
  if (segment.has_all(kSynAck)) {
    if (session.four_way_ && segment.to_server()) {
      if (segment.ack != server.isn + 1) return segment.refuse(TcpEvent::h4_synack_with_wrong_ack);
      if (segment.sequence != client.isn) return segment.refuse(TcpEvent::h4_synack_with_wrong_syn);
      set_state(segment, TcpState::syn_received);
      begin_at(client, segment.sequence);
      if (segment.options.has_timestamp && server.has_timestamp) {
        take_timestamp(client, segment.options.timestamp, segment.time_s);
        session.timestamps_ = true;
      } else {
        session.timestamps_ = false;
      }
      server.scale =
          session.scales_ && segment.options.has_window_scale ? segment.options.window_scale : std::uint8_t{0};
      server.last_ack = segment.ack;
      grant(server, segment.window);
      client.next_win = client.last_ack;
      grant(client, client.window);
      return true;
    }
    if (segment.to_server()) return segment.refuse(TcpEvent::h3_synack_in_wrong_direction);
    if (segment.ack != client.isn + 1 && segment.ack != client.next) adopt_queued_syn(segment);
    const bool fast_open = session.fast_open_ || segment.options.fast_open;
    if (!fast_open) {
      if (segment.ack != client.isn + 1) return segment.refuse(TcpEvent::h3_synack_with_wrong_ack);
      take_synack(segment);
      set_state(segment, TcpState::syn_received);
    } else {
      const bool carried_data = client.next != client.isn + 1;
      if (segment.ack == client.next) {
        session.fast_open_ = true;
        take_synack(segment);
        set_state(segment, carried_data ? TcpState::established : TcpState::syn_received);
      } else if (segment.ack == client.isn + 1) {
        // The server took the SYN, not the data: they will come again.
        segment.tell(TcpEvent::h3_synack_ignores_fast_open_data);
        client.buffer.clear(stream_memory_);
        client.next = client.isn + 1;
        session.fast_open_ = false;
        take_synack(segment);
        set_state(segment, TcpState::syn_received);
      } else {
        return segment.refuse(TcpEvent::h3_synack_with_wrong_ack);
      }
      if (!segment.payload.empty()) {
        server.next += segment.length();
        take_segment(segment);
      }
    }
    free_queue(session);
    return true;
  }
  if (segment.has(TcpHeader::kSyn)) {
    if (segment.to_client()) {  // simultaneous open
      session.four_way_ = true;
      begin_at(server, segment.sequence);
      if (segment.options.has_timestamp) take_timestamp(server, segment.options.timestamp, segment.time_s);
      client.window = segment.window;
      client.scale = session.scales_ ? segment.options.window_scale : std::uint8_t{0};
      session.scales_ = session.scales_ && segment.options.has_window_scale;
      return true;
    }
    if (segment.sequence != client.isn) return queue_syn(segment, TcpEvent::h3_syn_flood);
    return true;  // sent again
  }
  if (segment.has(TcpHeader::kAck)) {
    if (!options_.async_oneside) return true;
    // Only the client's side is seen.
    if (segment.sequence != client.next) return segment.refuse(TcpEvent::h3_async_wrong_sequence);
    session.async_ = true;
    set_state(segment, TcpState::established);
    begin_at(server, segment.ack - 1);
    client.last_ack = segment.sequence;
    client.next = segment.end();
    grant(server, segment.scaled_window());
    grant(client, segment.scaled_window());
    if (segment.options.has_timestamp && client.has_timestamp) {
      session.timestamps_ = true;
      note_timestamp(segment);
    }
    take_segment(segment);
  }
  return true;
}

bool TcpTracker::syn_received(Segment& segment) noexcept {
  TcpSession& session = *segment.session;
  TcpStream& client = segment.client();
  TcpStream& server = segment.server();
  if (segment.has(TcpHeader::kRst)) {
    if (!rst_valid(segment)) return false;
    // A host that was sent a wrong ACK does not take this for the connection's (hosts of these kinds).
    const bool ignored =
        session.evasion_ && segment.to_server() &&
        (options_.stream_policy == OverlapPolicy::linux_host || options_.stream_policy == OverlapPolicy::solaris);
    if (ignored) return true;
    segment.outcome.reset = true;
    set_state(segment, TcpState::closed);
    note_timestamp(segment);
    return true;
  }
  if (segment.has(TcpHeader::kFin)) return timestamp_valid(segment) && take_fin(segment);
  if (segment.has_all(kSynAck)) {
    if (segment.to_server() && !session.four_way_) {
      return segment.refuse(TcpEvent::h3_synack_to_server_on_syn_received);
    }
    if (segment.ack != segment.other().last_ack) {
      return segment.refuse(TcpEvent::h3_synack_resend_with_different_ack);
    }
    if (segment.sequence != segment.mine().isn) {
      if (segment.to_server()) return segment.refuse(TcpEvent::h3_synack_resend_with_different_sequence);
      if (!queue_syn(segment, TcpEvent::h3_synack_flood)) return false;
    }
    return true;
  }
  if (segment.has(TcpHeader::kSyn)) {
    if (segment.to_client()) return segment.refuse(TcpEvent::h3_syn_to_client_on_syn_received);
    if (segment.sequence != client.isn) return segment.refuse(TcpEvent::h3_syn_resend_with_different_sequence);
    return true;
  }
  if (!segment.has(TcpHeader::kAck)) return true;

  adopt_queued_synack(segment);
  if (!timestamp_valid(segment)) return false;
  if (session.four_way_ && segment.to_client()) {
    if (segment.sequence != server.next) return segment.refuse(TcpEvent::h4_wrong_sequence);
    if (!ack_valid(segment)) return segment.refuse(TcpEvent::h4_invalid_ack);
    note_timestamp(segment);
    server.next += segment.length();
    advance(client.last_ack, segment.ack);
    grant(client, segment.scaled_window());
    set_state(segment, TcpState::established);
    take_segment(segment);
    return true;
  }

  bool missed_ack = false;
  if (segment.to_client() && !session.midstream_synack_ && !session.fast_open_) {
    if (options_.inline_streams) {
      // All packets are seen: the client cannot have answered unseen. Data right behind the SYN/ACK may be injected.
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
    advance(other.last_ack, segment.ack);
    grant(other, segment.scaled_window());
    set_state(segment, TcpState::established);
    take_segment(segment);
    return true;
  };
  if (segment.to_server() && segment.sequence == client.next && segment.ack == server.next) {
    if (session.midstream_) {
      // The client's scale was in the SYN that was not seen.
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
  // Packets were lost: the server's, behind the client's unseen ACK; or the client's.
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

// ---- Data

bool TcpTracker::established(Segment& segment) noexcept {
  TcpSession& session = *segment.session;
  if (segment.has(TcpHeader::kRst)) return take_rst(segment);
  if (segment.has(TcpHeader::kFin)) return timestamp_valid(segment) && take_fin(segment);
  if (segment.has_all(kSynAck)) {
    if (segment.to_server()) return segment.refuse(TcpEvent::established_synack_to_server);
    if (segment.ack != segment.client().last_ack) {
      return segment.refuse(TcpEvent::established_synack_resend_with_different_ack);
    }
    if (segment.sequence != segment.server().isn) {
      return segment.refuse(TcpEvent::established_synack_resend_with_different_sequence);
    }
    // Until the server has answered, it may not have got the client's ACK.
    if (session.confirmed_) return segment.refuse(TcpEvent::established_synack_resend);
    return true;
  }
  if (segment.has(TcpHeader::kSyn)) {
    if (segment.to_client()) return segment.refuse(TcpEvent::established_syn_to_client);
    if (segment.sequence != segment.client().isn) {
      return segment.refuse(TcpEvent::established_syn_resend_with_different_sequence);
    }
    return segment.refuse(TcpEvent::established_syn_resend);
  }
  if (!segment.has(TcpHeader::kAck)) return true;
  return timestamp_valid(segment) && established_data(segment);
}

bool TcpTracker::established_data(Segment& segment) noexcept {
  TcpSession& session = *segment.session;
  TcpStream& mine = segment.mine();
  TcpStream& other = segment.other();
  if (!ack_valid(segment)) return segment.refuse(TcpEvent::established_invalid_ack);

  if (before(segment.end(), mine.last_ack)) {
    if (session.async_) {
      advance(mine.last_ack, segment.sequence);
    } else if (mine.next == segment.sequence && options_.async_oneside && session.midstream_) {
      session.async_ = true;
    } else if (!(after(mine.last_ack, mine.next) && after(segment.end(), mine.next))) {
      // Not data that were acknowledged before this watcher had seen them: sent again.
      return segment.refuse(TcpEvent::established_packet_before_last_ack);
    }
  }
  // A host that asks whether a window of 0 has opened sends the next byte; it is not taken (RFC 9293 §3.8.6.1). Inline
  // it belongs to the stream, as it may have opened meanwhile; if not, it comes again.
  if (segment.length() == 1 && segment.sequence == mine.next && mine.window == 0) {
    if (session.inline_) take_segment(segment);
    return true;
  }
  if (after(segment.end(), mine.next_win) && !session.midstream_ && !session.async_) {
    return segment.refuse(TcpEvent::established_packet_out_of_window);
  }
  advance(mine.next, segment.end());
  advance(other.last_ack, segment.ack);
  if (session.async_ && before(other.next, other.last_ack)) other.next = other.last_ack;
  if (session.async_) {
    advance(mine.last_ack, segment.sequence);
    advance(mine.next_win, mine.last_ack + mine.window);
  }
  if (segment.to_client()) session.confirmed_ = true;
  grant(other, segment.scaled_window());
  note_timestamp(segment);
  take_segment(segment);
  return true;
}

bool TcpTracker::take_rst(Segment& segment) noexcept {
  if (!rst_valid(segment)) return false;
  TcpStream& mine = segment.mine();
  TcpStream& other = segment.other();
  segment.outcome.reset = true;
  set_state(segment, TcpState::closed);
  // Nobody will acknowledge any more: what has come counts as received.
  const auto acknowledge_all = [](TcpStream& stream, std::uint32_t ack) noexcept {
    advance(stream.last_ack, ack);
    if (!stream.buffer.empty()) {
      const auto ahead = static_cast<std::int64_t>(stream.buffer.right_edge()) - stream.offset_of(stream.last_ack);
      if (ahead > 0) stream.last_ack += static_cast<std::uint32_t>(ahead);
    }
  };
  if (segment.has(TcpHeader::kAck)) {
    advance(other.next, segment.ack);
    acknowledge_all(other, segment.ack);
  } else {
    acknowledge_all(other, other.last_ack);
  }
  advance(mine.next, segment.end());
  note_timestamp(segment);
  take_segment(segment);
  acknowledge_all(mine, segment.sequence);
  return true;
}

// ---- The end

bool TcpTracker::take_fin(Segment& segment) noexcept {
  TcpStream& mine = segment.mine();
  TcpStream& other = segment.other();
  if (!ack_valid(segment)) return segment.refuse(TcpEvent::fin_invalid_ack);
  if (!fin_fits(segment)) {
    return segment.refuse(TcpEvent::fin_out_of_window);
  }
  set_state(segment, segment.to_server() ? TcpState::close_wait : TcpState::fin_wait1);
  mine.fin_sent = true;
  if (segment.sequence == mine.next ||
      (segment.session->inline_ && segment.has(TcpHeader::kFin) && fin_fits(segment))) {
    advance(mine.next, segment.end());
  }
  if (segment.has(TcpHeader::kAck)) advance(other.last_ack, segment.ack);
  grant(other, segment.scaled_window());
  note_timestamp(segment);
  // The other host acknowledges what this watcher has missed.
  if (segment.has(TcpHeader::kAck) && before(other.next, segment.ack)) other.next = segment.ack;
  take_segment(segment);
  return true;
}

std::optional<bool> TcpTracker::judge_before_shutdown(Segment& segment) noexcept {
  if (segment.has(TcpHeader::kSyn)) return segment.refuse(TcpEvent::shutdown_syn_resend);
  if (!segment.has(TcpHeader::kAck)) return true;
  if (!timestamp_valid(segment)) return false;
  return std::nullopt;
}

void TcpTracker::finish_shutdown_step(Segment& segment, bool retransmission) noexcept {
  TcpStream& mine = segment.mine();
  TcpStream& other = segment.other();
  if (segment.has(TcpHeader::kAck)) {
    advance(other.last_ack, segment.ack);
    if (before(other.next - 1, segment.ack)) advance(other.next, other.fin_sent ? segment.ack - 1 : segment.ack);
  }
  if (!retransmission) grant(other, segment.scaled_window());
  if (segment.sequence == mine.next ||
      (segment.session->inline_ && segment.has(TcpHeader::kFin) && fin_fits(segment))) {
    advance(mine.next, segment.end());
  }
  if (segment.has(TcpHeader::kFin)) mine.fin_sent = true;
  note_timestamp(segment);
  take_segment(segment);
}

bool TcpTracker::fin_wait1(Segment& segment) noexcept {
  TcpStream& mine = segment.mine();
  if (segment.has(TcpHeader::kRst)) return take_rst(segment);
  if (segment.has(TcpHeader::kFin)) {
    if (!timestamp_valid(segment)) return false;
    const bool again = is_retransmission(segment) || (mine.fin_sent && segment.end() == mine.next);
    if (!again && !fin_fits(segment)) {
      return segment.refuse(TcpEvent::fin1_fin_wrong_sequence);
    }
    if (!ack_valid(segment)) return segment.refuse(TcpEvent::fin1_invalid_ack);
    if (!again) {
      set_state(segment, segment.has(TcpHeader::kAck) ? TcpState::time_wait : TcpState::closing);
    }
    finish_shutdown_step(segment, again);
    return true;
  }
  if (const auto valid = judge_before_shutdown(segment)) return *valid;
  const bool again = is_retransmission(segment);
  if (!ack_valid(segment)) return segment.refuse(TcpEvent::fin1_invalid_ack);
  if (!again) {
    if (after(segment.end(), mine.next_win) && !segment.session->midstream_ && !segment.session->async_) {
      return segment.refuse(TcpEvent::fin1_ack_wrong_sequence);
    }
    const bool expected = segment.sequence == mine.next || (mine.fin_sent && segment.sequence == mine.next + 1);
    if (expected) set_state(segment, TcpState::fin_wait2);
  }
  finish_shutdown_step(segment, again);
  return true;
}

bool TcpTracker::fin_wait2(Segment& segment) noexcept {
  TcpStream& mine = segment.mine();
  TcpStream& other = segment.other();
  if (segment.has(TcpHeader::kRst)) return take_rst(segment);
  if (segment.has(TcpHeader::kFin)) {
    if (!timestamp_valid(segment)) return false;
    bool again = (segment.sequence == mine.next - 1 && segment.ack == other.last_ack) ||
                 (mine.fin_sent && segment.end() == mine.next);
    if (!again) again = is_retransmission(segment);
    if (!again && !fin_fits(segment)) {
      return segment.refuse(TcpEvent::fin2_fin_wrong_sequence);
    }
    if (!ack_valid(segment)) return segment.refuse(TcpEvent::fin2_invalid_ack);
    if (!again) set_state(segment, TcpState::time_wait);
    finish_shutdown_step(segment, again);
    return true;
  }
  if (const auto valid = judge_before_shutdown(segment)) return *valid;
  const bool again = is_retransmission(segment);
  if (!ack_valid(segment)) return segment.refuse(TcpEvent::fin2_invalid_ack);
  if (!again && after(segment.end(), mine.next_win) && !segment.session->midstream_ && !segment.session->async_) {
    return segment.refuse(TcpEvent::fin2_ack_wrong_sequence);
  }
  finish_shutdown_step(segment, again);
  return true;
}

bool TcpTracker::closing(Segment& segment) noexcept {
  TcpStream& mine = segment.mine();
  if (segment.has(TcpHeader::kRst)) return take_rst(segment);
  if (const auto valid = judge_before_shutdown(segment)) return *valid;
  const bool again = is_retransmission(segment);
  if (!again && segment.sequence != mine.next && !(mine.fin_sent && segment.sequence == mine.next + 1)) {
    return segment.refuse(TcpEvent::closing_ack_wrong_sequence);
  }
  if (!ack_valid(segment)) return segment.refuse(TcpEvent::closing_invalid_ack);
  if (!again) set_state(segment, TcpState::time_wait);
  finish_shutdown_step(segment, again);
  return true;
}

bool TcpTracker::close_wait(Segment& segment) noexcept {
  TcpStream& mine = segment.mine();
  if (segment.has(TcpHeader::kRst)) return take_rst(segment);
  if (segment.has(TcpHeader::kFin)) {
    if (!timestamp_valid(segment)) return false;
    bool again = is_retransmission(segment);
    if (!again && mine.fin_sent && segment.end() == mine.next) again = true;
    if (!again && !fin_fits(segment)) {
      return segment.refuse(TcpEvent::close_wait_fin_out_of_window);
    }
    if (!ack_valid(segment)) return segment.refuse(TcpEvent::close_wait_invalid_ack);
    if (!again && segment.to_client()) set_state(segment, TcpState::last_ack);
    finish_shutdown_step(segment, again);
    return true;
  }
  if (const auto valid = judge_before_shutdown(segment)) return *valid;
  const bool again = is_retransmission(segment);
  if (!segment.payload.empty() && not_after(segment.end(), mine.last_ack)) {
    return segment.refuse(TcpEvent::close_wait_packet_before_last_ack);
  }
  if (after(segment.sequence, mine.last_ack + mine.window)) {
    return segment.refuse(TcpEvent::close_wait_ack_out_of_window);
  }
  if (!ack_valid(segment)) return segment.refuse(TcpEvent::close_wait_invalid_ack);
  finish_shutdown_step(segment, again);
  return true;
}

bool TcpTracker::last_ack(Segment& segment) noexcept {
  TcpStream& mine = segment.mine();
  if (segment.has(TcpHeader::kRst)) return take_rst(segment);
  if (segment.has(TcpHeader::kFin)) return true;
  if (const auto valid = judge_before_shutdown(segment)) return *valid;
  if (!segment.to_server()) return true;
  const bool again = is_retransmission(segment);
  if (!ack_valid(segment)) return segment.refuse(TcpEvent::last_ack_invalid_ack);
  if (!again && (before(segment.sequence, mine.next) || after(segment.sequence, mine.last_ack + mine.window + 1))) {
    return segment.refuse(TcpEvent::last_ack_ack_wrong_sequence);
  }
  if (!again) set_state(segment, TcpState::closed);
  finish_shutdown_step(segment, again);
  return true;
}

bool TcpTracker::time_wait(Segment& segment) noexcept {
  TcpStream& mine = segment.mine();
  if (segment.has(TcpHeader::kRst)) return take_rst(segment);
  if (segment.has(TcpHeader::kFin)) return true;
  if (const auto valid = judge_before_shutdown(segment)) return *valid;
  const bool again = is_retransmission(segment);
  if (!again && segment.sequence != mine.next && segment.sequence != mine.next + 1) {
    return segment.refuse(TcpEvent::time_wait_ack_wrong_sequence);
  }
  if (!ack_valid(segment)) return segment.refuse(TcpEvent::time_wait_invalid_ack);
  if (!again) set_state(segment, TcpState::closed);
  finish_shutdown_step(segment, again);
  return true;
}

// Behind a RST its sender may go on, and then it was not its own: the session goes on as well.
bool TcpTracker::closed(Segment& segment) noexcept {
  TcpSession& session = *segment.session;
  if (segment.has(TcpHeader::kRst)) return true;
  const bool by_sender = segment.other().reset_by_other;
  if (!by_sender || segment.mine().reset_by_other) return true;
  const TcpState before_rst = session.state_before_;
  if (before_rst == TcpState::closed || before_rst == TcpState::none) return true;
  if (!in_state(segment, before_rst)) return false;
  if (session.state_ == TcpState::closed && segment.has(TcpHeader::kAck)) {
    set_state(segment, before_rst);
  }
  return true;
}

}  // namespace penstock::stack
