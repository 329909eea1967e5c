// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "conntrack/tcp_window.h"

#include <algorithm>

namespace penstock::conntrack {
namespace {

/// How far back acknowledgments may be, at least: the largest window without scaling, and some.
constexpr std::uint32_t kLeastAckWindow = 66'000;

/// From a SYN or SYN/ACK, which say where the side begins.
void begin_side(TcpSide& sender, TcpSide& receiver, Direction direction, const TcpSegment& segment) noexcept {
  sender.end = sender.max_end = segment.end;
  sender.max_window = std::max<std::uint32_t>(segment.window, 1);
  read_syn_options(segment.options, sender);
  // Windows are scaled only if both sides have offered it (RFC 7323 §2.2).
  if (direction == Direction::reply && !(sender.has(TcpSide::kWindowScale) && receiver.has(TcpSide::kWindowScale))) {
    sender.scale = receiver.scale = 0;
  }
}

/// From a segment in the middle of a connection whose beginning was not seen.
void pick_up_side(TcpSide& sender, TcpSide& receiver, const TcpSegment& segment, std::uint32_t sack) noexcept {
  sender.end = segment.end;
  sender.max_window = std::max<std::uint32_t>(std::uint32_t{segment.window} << sender.scale, 1);
  sender.max_end = segment.end + sender.max_window;
  if (receiver.max_window == 0) {
    receiver.end = receiver.max_end = sack;  // nothing seen from it yet: believe what the sender acknowledges
  } else if (sack == receiver.end + 1) {
    ++receiver.end;  // probably the answer to a keep-alive
  }
}

void note_retransmissions(TcpTracking& tcp, Direction direction, const TcpSegment& segment,
                          std::uint32_t ack) noexcept {
  if (tcp.last_direction == direction && tcp.last_sequence == segment.sequence && tcp.last_ack == ack &&
      tcp.last_end == segment.end && tcp.last_window == segment.window) {
    ++tcp.retransmissions;
    return;
  }
  tcp.last_direction = direction;
  tcp.last_sequence = segment.sequence;
  tcp.last_ack = ack;
  tcp.last_end = segment.end;
  tcp.last_window = segment.window;
  tcp.retransmissions = 0;
}

}  // namespace

WindowCheck check_window(TcpTracking& tcp, TcpState state, Direction direction, const TcpSegment& received,
                         bool liberal) noexcept {
  TcpSegment segment = received;
  TcpSide& sender = tcp.sides[static_cast<unsigned>(direction)];
  TcpSide& receiver = tcp.sides[static_cast<unsigned>(opposite(direction))];
  const bool syn = segment.has(TcpHeader::kSyn), has_ack = segment.has(TcpHeader::kAck),
             rst = segment.has(TcpHeader::kRst);
  std::uint32_t ack = segment.ack;
  std::uint32_t sack = receiver.has(TcpSide::kSack) ? highest_sack(segment.options, ack) : ack;
  ack -= segment.ack_shift;
  sack -= segment.ack_shift;

  if (sender.max_window == 0) {
    if (syn) {
      begin_side(sender, receiver, direction, segment);
      if (!has_ack) return WindowCheck::plausible;  // simultaneous open
    } else {
      pick_up_side(sender, receiver, segment, sack);
    }
  } else if (syn && after(segment.end, sender.end) && (state == TcpState::syn_sent || state == TcpState::syn_recv)) {
    // Another attempt, with another initial sequence number.
    begin_side(sender, receiver, direction, segment);
    if (direction == Direction::reply && !has_ack) return WindowCheck::plausible;
  }

  // Some stacks send RSTs that acknowledge 0.
  if (!has_ack || (rst && ack == 0)) ack = sack = receiver.end;
  // A RST that answers a SYN need not have a sequence number.
  if (rst && segment.sequence == 0 && state == TcpState::syn_sent) segment.sequence = segment.end = sender.end;

  const auto implausible = [&](WindowCheck check) noexcept { return liberal ? WindowCheck::plausible : check; };
  const std::uint32_t least_ack = receiver.end - std::max(sender.max_window, kLeastAckWindow) - 1;
  const std::uint32_t least_end = sender.end - receiver.max_window - 1;
  if (!before(segment.sequence, sender.max_end + 1)) {
    const std::uint32_t overshoot = segment.end - sender.max_end + 1;
    const bool otherwise_plausible = receiver.max_window != 0 && after(segment.end, least_end) &&
                                     after(sack, least_ack) && before(sack, receiver.end + 1);
    if (!otherwise_plausible || overshoot > receiver.max_window) return implausible(WindowCheck::invalid);
    // More than the window allows, but the receiver may take it. Without this, its acknowledgment would be invalid.
    sender.end = segment.end;
    sender.flags |= TcpSide::kUnacknowledged;
    return implausible(WindowCheck::old);
  }
  if (!before(sack, receiver.end + 1)) return implausible(WindowCheck::invalid);
  if (receiver.max_window != 0 && !after(segment.end, least_end)) return implausible(WindowCheck::old);
  if (!after(sack, least_ack)) return implausible(WindowCheck::old);

  // Windows of SYNs are not scaled (RFC 7323 §2.2).
  const std::uint32_t window = syn ? segment.window : std::uint32_t{segment.window} << sender.scale;
  sender.max_window = std::max(sender.max_window, window + (sack - ack));
  if (after(segment.end, sender.end)) {
    sender.end = segment.end;
    sender.flags |= TcpSide::kUnacknowledged;
  }
  if (has_ack && (!sender.has(TcpSide::kAcknowledged) || after(ack, sender.max_ack))) {
    sender.max_ack = ack;
    sender.flags |= TcpSide::kAcknowledged;
  }
  if (receiver.max_window != 0 && after(segment.end, sender.max_end)) {
    receiver.max_window += segment.end - sender.max_end;
  }
  if (after(sack + window, receiver.max_end - 1)) receiver.max_end = sack + std::max<std::uint32_t>(window, 1);
  if (ack == receiver.end) receiver.flags &= static_cast<std::uint8_t>(~TcpSide::kUnacknowledged);
  if (segment.kind == TcpKind::ack) note_retransmissions(tcp, direction, segment, ack);
  return WindowCheck::plausible;
}

}  // namespace penstock::conntrack
