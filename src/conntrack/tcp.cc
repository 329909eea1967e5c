// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// In the order in which track_tcp() uses them: the table of states; segments that are let pass without being believed;
// RSTs; timeouts.

#include "conntrack/tcp.h"

#include <algorithm>
#include <array>

#include "conntrack/tcp_window.h"

namespace penstock::conntrack {
namespace {

// A TcpState, or:
constexpr std::uint8_t kIgnored = 10;  // passes, but tells nothing for sure: tracking may be out of step with the hosts
constexpr std::uint8_t kInvalid = 11;

constexpr std::uint8_t value(TcpState state) noexcept { return static_cast<std::uint8_t>(state); }

/// The next state, by state, direction and TcpKind. All of TcpKind::none are invalid.
using Row = std::array<std::array<std::uint8_t, 5>, 2>;
constexpr std::array<Row, 10> kNext = [] {
  constexpr std::uint8_t kSs = value(TcpState::syn_sent), kSr = value(TcpState::syn_recv),
                         kEs = value(TcpState::established), kFw = value(TcpState::fin_wait),
                         kCw = value(TcpState::close_wait), kLa = value(TcpState::last_ack),
                         kTw = value(TcpState::time_wait), kCl = value(TcpState::close),
                         kS2 = value(TcpState::syn_sent2), kIg = kIgnored, kXx = kInvalid;
  return std::array<Row, 10>{{
      // original: SYN, SYN/ACK, FIN, ACK, RST   reply: SYN, SYN/ACK, FIN, ACK, RST
      {{{kSs, kXx, kXx, kEs, kXx}, {kXx, kXx, kXx, kXx, kXx}}},  // none
      {{{kSs, kXx, kXx, kXx, kCl}, {kS2, kSr, kXx, kIg, kCl}}},  // syn_sent
      {{{kIg, kSr, kFw, kEs, kCl}, {kXx, kIg, kFw, kSr, kCl}}},  // syn_recv
      {{{kIg, kXx, kFw, kEs, kCl}, {kXx, kIg, kFw, kEs, kCl}}},  // established
      {{{kIg, kXx, kLa, kCw, kCl}, {kXx, kIg, kLa, kCw, kCl}}},  // fin_wait
      {{{kIg, kXx, kLa, kCw, kCl}, {kXx, kIg, kLa, kCw, kCl}}},  // close_wait
      {{{kIg, kXx, kLa, kTw, kCl}, {kXx, kIg, kLa, kTw, kCl}}},  // last_ack
      {{{kSs, kXx, kTw, kTw, kCl}, {kSs, kIg, kTw, kTw, kCl}}},  // time_wait
      {{{kSs, kXx, kCl, kCl, kCl}, {kXx, kIg, kCl, kCl, kCl}}},  // close
      {{{kS2, kSr, kXx, kXx, kCl}, {kS2, kSr, kXx, kIg, kCl}}},  // syn_sent2
  }};
}();

std::uint8_t next_state(TcpState state, Direction direction, TcpKind kind) noexcept {
  if (kind == TcpKind::none) return kInvalid;
  return kNext[value(state)][static_cast<unsigned>(direction)][static_cast<unsigned>(kind)];
}

/// One side has closed first; or the last segment of this direction was a RST: the hosts may begin anew.
bool may_reopen(const TcpTracking& tcp, Direction direction) noexcept {
  return tcp.sides[0].has(TcpSide::kClosedFirst) || tcp.sides[1].has(TcpSide::kClosedFirst) ||
         (tcp.last_direction == direction && tcp.last_kind == TcpKind::rst);
}

/// A SYN/ACK to a SYN that was let pass: the hosts have agreed on a connection that tracking did not believe in.
bool confirms_ignored_syn(const TcpTracking& tcp, Direction direction, const TcpSegment& segment) noexcept {
  return segment.kind == TcpKind::syn_ack && tcp.last_kind == TcpKind::syn && tcp.last_direction != direction &&
         segment.ack == tcp.last_end;
}

/// Takes over what was noted of that SYN. The other side begins with the SYN/ACK, but stays liberal if it was.
void believe_ignored_syn(TcpTracking& tcp, Direction direction) noexcept {
  TcpSide& side = tcp.sides[static_cast<unsigned>(tcp.last_direction)];
  tcp.last_flags &= static_cast<std::uint8_t>(~TcpTracking::kExpectsChallenge);
  side.end = side.max_end = tcp.last_end;
  side.max_window = std::max<std::uint32_t>(tcp.last_window, 1);
  side.scale = tcp.last_scale;
  side.flags = tcp.last_flags;
  TcpSide& other = tcp.sides[static_cast<unsigned>(direction)];
  const std::uint8_t liberal = other.flags & TcpSide::kLiberal;
  other = {};
  other.flags = liberal;
}

/// Notes a segment that passes without being believed. What the hosts answer shows which of them was right.
void note_ignored(Connection& connection, Direction direction, const TcpSegment& segment) noexcept {
  TcpTracking& tcp = connection.tcp;
  tcp.last_kind = segment.kind;
  tcp.last_direction = direction;
  tcp.last_sequence = segment.sequence;
  tcp.last_end = segment.end;
  tcp.last_window = segment.window;
  if (segment.kind == TcpKind::syn && direction == Direction::original) {
    TcpSide offered;
    read_syn_options(segment.options, offered);
    tcp.last_scale = offered.scale;
    tcp.last_flags = offered.flags;
    // A host that is still in the connection answers a SYN with an ACK (RFC 5961 §4).
    if (connection.tcp_state == TcpState::last_ack) tcp.last_flags |= TcpTracking::kExpectsChallenge;
  }
  // The same, where tracking has seen only the SYN.
  if (connection.tcp_state == TcpState::syn_sent && segment.kind == TcpKind::ack && direction == Direction::reply) {
    tcp.last_ack = segment.ack;
  }
}

/// An ACK in LAST_ACK that answers a SYN (RFC 5961 §4), not the FIN.
bool is_challenge(const Connection& connection, Direction direction, const TcpSegment& segment) noexcept {
  const TcpTracking& tcp = connection.tcp;
  return connection.tcp_state == TcpState::last_ack && segment.kind == TcpKind::ack &&
         tcp.last_direction != direction && tcp.last_kind == TcpKind::syn &&
         (tcp.last_flags & TcpTracking::kExpectsChallenge) != 0;
}

bool is_established(const Connection& connection) noexcept {
  return connection.tcp_state == TcpState::established && connection.assured();
}

struct ResetJudgment {
  bool possible = true;
  bool certain = false;  // needs no check of the window
  bool believed = true;  // closes the connection; else the receiver may answer with a challenge ACK
};

/// RFC 5961 §3: a host believes a RST exactly where the next byte is expected.
ResetJudgment judge_reset(const Connection& connection, Direction direction, const TcpSegment& segment,
                          const Options& options) noexcept {
  const TcpTracking& tcp = connection.tcp;
  if (is_closing(connection.tcp_state)) return {.certain = true};
  const TcpSide& receiver = tcp.sides[static_cast<unsigned>(opposite(direction))];
  bool believed = true;
  // After a SYN that was let pass, the hosts may be in another connection already.
  if (receiver.has(TcpSide::kAcknowledged) && tcp.last_kind != TcpKind::syn) {
    const bool established = is_established(connection);
    // 0 before the connection is established: probably the answer to a SYN that was let pass.
    if (segment.sequence == 0 && !established) return {};
    if (before(segment.sequence, receiver.max_ack) && !options.tcp_ignore_invalid_rst) return {.possible = false};
    // Where the receiver expects it, or directly after the sender's last segment.
    if (!established || segment.sequence == receiver.max_ack) return {};
    if (tcp.last_kind == TcpKind::ack && tcp.last_direction == direction && segment.sequence == tcp.last_end) return {};
    believed = false;
  }
  const bool answers_syn = connection.seen_reply() && tcp.last_kind == TcpKind::syn && tcp.last_direction != direction;
  const bool answers_ack = !connection.assured() && tcp.last_kind == TcpKind::ack;
  // The answer to a SYN or ACK that was let pass, or to a challenge ACK.
  const bool certain = ((answers_syn || answers_ack) && segment.ack == tcp.last_end) ||
                       (connection.tcp_state == TcpState::syn_sent && tcp.last_kind == TcpKind::ack &&
                        tcp.last_direction == Direction::reply && segment.sequence == tcp.last_ack);
  return {.certain = certain, .believed = believed};
}

/// After both sides have sent a FIN or RST of which one is outside the window, tracking is out of step with the hosts.
/// Then the connection must not stay for as long as an established one.
Outcome reject_outside_window(Connection& connection, Direction direction, const TcpSegment& segment,
                              const Options& options, std::uint64_t remaining_s) noexcept {
  constexpr std::uint64_t kSoon = 120;
  const auto ends = [](TcpKind kind) noexcept { return kind == TcpKind::rst || kind == TcpKind::fin; };
  Outcome outcome = Outcome::invalid(Reason::tcp_window);
  if (!connection.assured() || !ends(segment.kind)) return outcome;
  TcpTracking& tcp = connection.tcp;
  if (tcp.last_direction == direction || !ends(tcp.last_kind)) {
    tcp.last_kind = segment.kind;
    tcp.last_direction = direction;
  } else if (remaining_s >= kSoon && remaining_s > options.timeouts.tcp_unacknowledged) {
    outcome.kind = Outcome::Kind::shortened;
    outcome.timeout_s = options.timeouts.tcp_unacknowledged;
  }
  return outcome;
}

std::uint32_t timeout_of(TcpState state, const Timeouts& timeouts) noexcept {
  switch (state) {
    case TcpState::none:
    case TcpState::syn_sent:
    case TcpState::syn_sent2: return timeouts.tcp_syn_sent;
    case TcpState::syn_recv: return timeouts.tcp_syn_recv;
    case TcpState::established: return timeouts.tcp_established;
    case TcpState::fin_wait: return timeouts.tcp_fin_wait;
    case TcpState::close_wait: return timeouts.tcp_close_wait;
    case TcpState::last_ack: return timeouts.tcp_last_ack;
    case TcpState::time_wait: return timeouts.tcp_time_wait;
    case TcpState::close: return timeouts.tcp_close;
  }
  return timeouts.tcp_close;
}

std::uint32_t timeout_after(const Connection& connection, TcpKind kind, const Options& options) noexcept {
  const Timeouts& timeouts = options.timeouts;
  const TcpTracking& tcp = connection.tcp;
  const std::uint32_t timeout = timeout_of(connection.tcp_state, timeouts);
  if (tcp.retransmissions >= options.tcp_max_retrans && timeout > timeouts.tcp_max_retrans) {
    return timeouts.tcp_max_retrans;
  }
  if (kind == TcpKind::rst) return timeouts.tcp_close;
  const bool unacknowledged = tcp.sides[0].has(TcpSide::kUnacknowledged) || tcp.sides[1].has(TcpSide::kUnacknowledged);
  if (unacknowledged && timeout > timeouts.tcp_unacknowledged) return timeouts.tcp_unacknowledged;
  if (tcp.last_window == 0 && timeout > timeouts.tcp_max_retrans) return timeouts.tcp_max_retrans;
  return timeout;
}

/// A plausible segment has brought the connection from `old_state` to its state.
Outcome finish(Connection& connection, TcpState old_state, TcpKind kind, const Options& options) noexcept {
  std::uint32_t timeout = timeout_after(connection, kind, options);
  const bool established = connection.tcp_state == TcpState::established;
  if (!connection.seen_reply()) {
    if (kind == TcpKind::rst) return {.kind = Outcome::Kind::ended};
    // Hosts that use a port again and again must not keep an unanswered connection alive.
    if (kind == TcpKind::syn && old_state == TcpState::syn_sent) return {.kind = Outcome::Kind::unchanged};
    // Picked up in its middle.
    if (established) timeout = std::min(timeout, options.timeouts.tcp_unacknowledged);
  } else if (established && (old_state == TcpState::syn_recv || old_state == TcpState::established)) {
    connection.status |= Connection::kAssured;
  }
  return Outcome::refreshed(timeout);
}

}  // namespace

bool begins_tcp(const TcpSegment& segment, const Options& options) noexcept {
  const std::uint8_t next = next_state(TcpState::none, Direction::original, segment.kind);
  return next == value(TcpState::syn_sent) || (next != kInvalid && options.tcp_loose);
}

void begin_tcp(Connection& connection, const TcpSegment& segment) noexcept {
  connection.tcp = {};
  TcpSide& side = connection.tcp.sides[0];
  side.end = side.max_end = segment.end;
  side.max_window = std::max<std::uint32_t>(segment.window, 1);
  if (segment.kind == TcpKind::syn) {
    read_syn_options(segment.options, side);
  } else {
    // Whether windows are scaled was said in the handshake.
    side.max_end += side.max_window;
    for (TcpSide& each : connection.tcp.sides) each.flags = TcpSide::kSack | TcpSide::kLiberal;
  }
}

Outcome track_tcp(Connection& connection, Direction direction, const TcpSegment& segment, const Options& options,
                  std::uint64_t remaining_s) noexcept {
  TcpTracking& tcp = connection.tcp;
  TcpState old_state = connection.tcp_state;
  std::uint8_t next = next_state(old_state, direction, segment.kind);
  bool in_window = false;

  if (next == value(TcpState::syn_sent) && old_state >= TcpState::time_wait) {
    if (may_reopen(tcp, direction)) return {.kind = Outcome::Kind::reopened};
    next = kIgnored;
  }
  if (next == kIgnored) {
    if (!confirms_ignored_syn(tcp, direction, segment)) {
      note_ignored(connection, direction, segment);
      return {.kind = Outcome::Kind::unchanged};
    }
    believe_ignored_syn(tcp, direction);
    old_state = TcpState::syn_sent;
    next = value(TcpState::syn_recv);
  } else if (next == kInvalid) {
    return Outcome::invalid(Reason::tcp_state);
  } else if (next == value(TcpState::time_wait)) {
    if (is_challenge(connection, direction, segment)) {
      tcp.last_flags &= static_cast<std::uint8_t>(~TcpTracking::kExpectsChallenge);
      return {.kind = Outcome::Kind::unchanged};
    }
  } else if (next == value(TcpState::syn_sent2)) {
    tcp.last_flags |= TcpTracking::kSimultaneous;
  } else if (next == value(TcpState::syn_recv)) {
    // The table alone would wait for an ACK of the original side, which has sent its own already.
    if (direction == Direction::reply && segment.kind == TcpKind::ack &&
        (tcp.last_flags & TcpTracking::kSimultaneous) != 0) {
      next = value(TcpState::established);
    }
  } else if (next == value(TcpState::close) && segment.kind == TcpKind::rst) {
    const ResetJudgment reset = judge_reset(connection, direction, segment, options);
    if (!reset.possible) return Outcome::invalid(Reason::tcp_reset);
    if (!reset.believed) next = value(old_state);
    in_window = reset.certain;
  }

  if (!in_window) {
    const TcpSide& sender = tcp.sides[static_cast<unsigned>(direction)];
    const bool liberal = options.tcp_be_liberal || sender.has(TcpSide::kLiberal);
    switch (check_window(tcp, connection.tcp_state, direction, segment, liberal)) {
      case WindowCheck::old: return {.kind = Outcome::Kind::unchanged};
      case WindowCheck::invalid: return reject_outside_window(connection, direction, segment, options, remaining_s);
      case WindowCheck::plausible: break;
    }
  }
  tcp.last_kind = segment.kind;
  tcp.last_direction = direction;
  connection.tcp_state = static_cast<TcpState>(next);
  if (old_state != TcpState::fin_wait && connection.tcp_state == TcpState::fin_wait) {
    tcp.sides[static_cast<unsigned>(direction)].flags |= TcpSide::kClosedFirst;
  }
  return finish(connection, old_state, segment.kind, options);
}

}  // namespace penstock::conntrack
