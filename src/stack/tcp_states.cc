// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The states of RFC 9293 as seen between the hosts. They describe the connection, not one host. `fin_wait1`: the server
// sent the first FIN. `close_wait`: the client did.
//
//     none ─SYN▶ syn_sent ─SYN/ACK▶ syn_received ─ACK▶ established ─FIN of the server▶ fin_wait1 ─ACK▶ fin_wait2
//                                                          │FIN of the client             │FIN         │FIN
//                                                          ▼                              ▼            ▼
//                                                      close_wait ─FIN▶ last_ack      time_wait ─ACK▶ closed
//
// Each function returns whether the packet is valid in the state. The payload of invalid packets is not added to the
// stream.

#include "stack/tcp_tracker.h"

namespace penstock::stack {
namespace {

constexpr std::uint8_t kSynAck = TcpHeader::kSyn | TcpHeader::kAck;

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
    // Until the server has responded, it may not have received the client's ACK.
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

  if (before(segment.end(), mine.last_ack) && !is_early(segment)) {
    if (session.async_) {
      advance(mine.last_ack, segment.sequence);
    } else if (mine.next == segment.sequence && options_.async_oneside && session.midstream_) {
      session.async_ = true;
    } else if (!(after(mine.last_ack, mine.next) && after(segment.end(), mine.next))) {
      // An old retransmission. Data that was acknowledged before the tracker saw it is still accepted.
      return segment.refuse(TcpEvent::established_packet_before_last_ack);
    }
  }
  // A zero-window probe carries the next byte, which the receiver does not accept (RFC 9293 §3.8.6.1). Inline it is
  // added to the stream, since the window may have opened meanwhile. If not, the byte is sent again.
  if (segment.length() == 1 && segment.sequence == mine.next && mine.window == 0) {
    if (session.inline_) take_segment(segment);
    return true;
  }
  if (after(segment.end(), mine.next_win) && !session.midstream_ && !session.async_) {
    return segment.refuse(TcpEvent::established_packet_out_of_window);
  }
  advance(mine.next, segment.end());
  if (session.async_) advance(other.next, segment.ack);
  other.acknowledge(segment.ack);
  if (session.async_) {
    advance(mine.last_ack, segment.sequence);
    advance(mine.next_win, mine.last_ack + mine.window);
  }
  if (segment.to_client()) {
    session.confirmed_ = true;
    if (not_before(segment.ack, other.isn + 1)) session.begin_confirmed_ = true;
  }
  other.grant(segment.scaled_window());
  note_timestamp(segment);
  take_segment(segment);
  return true;
}

bool TcpTracker::take_rst(Segment& segment) noexcept {
  if (!rst_valid(segment)) return false;
  segment.outcome.reset = true;
  if (segment.has(TcpHeader::kAck)) segment.other().acknowledge(segment.ack);
  advance(segment.mine().next, segment.sequence);
  set_state(segment, TcpState::closed);
  note_timestamp(segment);
  take_segment(segment);
  return true;
}

// ---- Shutdown

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
  if (segment.has(TcpHeader::kAck)) other.acknowledge(segment.ack);
  other.grant(segment.scaled_window());
  note_timestamp(segment);
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
  if (segment.has(TcpHeader::kAck)) other.acknowledge(segment.ack);
  if (!retransmission) other.grant(segment.scaled_window());
  if (segment.sequence == mine.next ||
      (segment.session->inline_ && segment.has(TcpHeader::kFin) && fin_fits(segment))) {
    advance(mine.next, segment.end());
  }
  if (segment.has(TcpHeader::kFin)) mine.fin_sent = true;
  note_timestamp(segment);
  take_segment(segment);
}

// A FIN may overtake lost data, which can still follow until the FIN is acknowledged.
void TcpTracker::close_if_confirmed(Segment& segment) noexcept {
  if (segment.session->end_confirmed() || segment.session->async_) set_state(segment, TcpState::closed);
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
  finish_shutdown_step(segment, again);
  close_if_confirmed(segment);
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
  finish_shutdown_step(segment, again);
  close_if_confirmed(segment);
  return true;
}

// If the supposed sender of a RST continues, the RST was forged, so the session continues too.
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
