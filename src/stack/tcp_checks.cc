// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Which packets are taken for their session's own.

#include "stack/tcp_tracker.h"

namespace penstock::stack {

// PAWS (RFC 7323 §5), with the liberties that hosts take by the policy they are known for.
bool TcpTracker::timestamp_valid(Segment& segment) noexcept {
  TcpSession& session = *segment.session;
  if (!session.timestamps_ || !segment.options.has_timestamp) return true;
  TcpStream& mine = segment.mine();
  const std::uint32_t timestamp = segment.options.timestamp;
  const OverlapPolicy host = options_.stream_policy;
  // Inline it is taken all the same: hosts differ in what is too old for them (a clock that stands at 0, segments that
  // overtook each other), and of what the stream has nothing else will pass in its place.
  const auto wrong = [&]() noexcept {
    segment.tell(TcpEvent::invalid_timestamp);
    return session.inline_ && !segment.has(TcpHeader::kRst);
  };
  if (mine.zero_timestamp) {
    if (host == OverlapPolicy::linux_host) {  // no host that begins with 0
      session.timestamps_ = false;
      return true;
    }
    if (host == OverlapPolicy::windows) {  // the next will be checked
      mine.zero_timestamp = false;
      if (mine.next == segment.sequence) mine.timestamp = timestamp;
      return true;
    }
  }
  if (timestamp == 0 && host != OverlapPolicy::windows && host != OverlapPolicy::solaris) {
    return wrong();
  }
  const std::int32_t ahead = sequence_distance(timestamp, mine.timestamp) + (host == OverlapPolicy::linux_host ? 1 : 0);
  std::uint32_t last_s = mine.timestamp_s;
  if (last_s == 0 && session.midstream_) last_s = segment.time_s;
  const bool aged = segment.time_s > last_s + kTimestampAge;
  if (ahead >= 0 && !(mine.timestamp != 0 && aged)) return true;
  if (mine.next == segment.sequence && aged) {
    mine.timestamp = timestamp;
    return true;
  }
  return wrong();
}

void TcpTracker::note_timestamp(Segment& segment) noexcept {
  if (!segment.session->timestamps_ || !segment.options.has_timestamp) return;
  TcpStream& mine = segment.mine();
  if (mine.next == segment.sequence) mine.timestamp = segment.options.timestamp;
  mine.timestamp_s = segment.time_s;
}

bool TcpTracker::ack_valid(Segment& segment) noexcept {
  if (!segment.has(TcpHeader::kAck)) return true;
  const TcpStream& stream = segment.other();
  const std::uint32_t ack = segment.ack;
  if (after(ack, stream.last_ack) && not_after(ack, stream.next_win)) return true;
  if (ack == stream.last_ack) return true;
  if (before(ack, stream.last_ack)) {
    // As far back as a window, it may have been on its way for long.
    if (stream.window != 0 && before(ack, stream.last_ack - stream.window))
      return segment.refuse(TcpEvent::invalid_ack);
    return true;
  }
  if (segment.session->async_) return true;
  if (segment.session->state_ > TcpState::syn_sent && after(ack, stream.next_win)) {
    return segment.refuse(TcpEvent::invalid_ack);
  }
  // A RST in answer to a SYN, of which no window is known yet.
  if (segment.session->state_ == TcpState::syn_sent && segment.to_client() && segment.has(TcpHeader::kRst) &&
      ack == stream.isn + 1) {
    return true;
  }
  return segment.refuse(TcpEvent::invalid_ack);
}

// Hosts take a RST that has the number they expect next.
bool TcpTracker::rst_valid(Segment& segment) noexcept {
  if (!timestamp_valid(segment)) return false;
  TcpStream& mine = segment.mine();
  TcpStream& other = segment.other();
  if (segment.has(TcpHeader::kAck) && segment.ack != 0 && !ack_valid(segment)) {
    return segment.refuse(TcpEvent::rst_invalid_ack);
  }
  const auto valid = [&]() noexcept {
    if (segment.session->async_) return not_before(segment.sequence, mine.next);
    if (segment.session->state_ == TcpState::syn_sent && segment.to_client()) return true;
    switch (options_.stream_policy) {
      case OverlapPolicy::linux_host: {  // RFC 5961 §3.2; to others in the window, a challenge ACK is the answer
        const auto in_order = static_cast<std::int64_t>(mine.in_order());
        const std::int64_t offset = mine.offset_of(segment.sequence);
        return offset == in_order || (mine.fin_sent && offset == in_order + 1) || segment.sequence == mine.last_ack;
      }
      default: return segment.sequence == mine.next || (mine.fin_sent && segment.sequence == mine.next + 1);
    }
  };
  if (!valid()) return false;
  other.reset_by_other = true;
  return true;
}

bool TcpTracker::is_retransmission(Segment& segment) noexcept {
  if (segment.payload.empty()) return false;
  const TcpStream& mine = segment.mine();
  const bool partly_acked = before(segment.sequence, mine.last_ack) && after(segment.end(), mine.last_ack);
  if (!partly_acked && !not_after(segment.end(), mine.last_ack) && !not_after(segment.end(), mine.next)) return false;
  segment.tell(TcpEvent::retransmission);
  return true;
}

// RFC 9293 §3.8.4: the byte before the next one, or none.
bool TcpTracker::is_keep_alive(Segment& segment) noexcept {
  if (segment.length() > 1 || segment.has(TcpHeader::kSyn | TcpHeader::kFin | TcpHeader::kRst)) return false;
  TcpStream& mine = segment.mine();
  if (segment.ack != segment.other().last_ack || segment.sequence != mine.next - 1) return false;
  if (is_early(segment)) return false;
  mine.kept_alive = true;
  return true;
}

bool TcpTracker::is_keep_alive_ack(const Segment& segment) noexcept {
  const TcpStream& other = segment.other();
  return segment.is_bare() && segment.window != 0 && other.kept_alive && segment.scaled_window() == other.window &&
         segment.ack == other.last_ack && segment.sequence == segment.mine().next;
}

bool TcpTracker::is_window_update(const Segment& segment) noexcept {
  const TcpStream& other = segment.other();
  return segment.is_bare() && segment.window != 0 && segment.scaled_window() != other.window &&
         segment.ack == other.last_ack && segment.sequence == segment.mine().next;
}

// The ACK of the other's FIN, behind one's own.
bool TcpTracker::is_shutdown_ack(const Segment& segment) noexcept {
  const TcpState state = segment.session->state_;
  if (!segment.is_bare() || !segment.has(TcpHeader::kAck)) return false;
  if (state != TcpState::time_wait && state != TcpState::close_wait && state != TcpState::last_ack) return false;
  const TcpStream& mine = segment.mine();
  return (segment.sequence == mine.next || (mine.fin_sent && segment.sequence == mine.next + 1)) &&
         segment.ack == segment.other().next + 1;
}

// A window that shrinks by more than was received, in a packet from behind what is known: a fake, or heavy loss.
bool TcpTracker::is_bad_window_update(Segment& segment) noexcept {
  const TcpState state = segment.session->state_;
  if (!segment.is_bare() || segment.window == 0) return false;
  if (state < TcpState::established || state == TcpState::closed) return false;
  const TcpStream& other = segment.other();
  const std::uint32_t window = segment.scaled_window();
  if (window >= other.window || !after(segment.ack, other.next) || !after(segment.sequence, segment.mine().next)) {
    return false;
  }
  // What it acknowledges beyond what was seen may be a FIN.
  if (segment.ack == other.next + 1 && other.fin_sent) return false;
  segment.tell(TcpEvent::bad_window_update);
  return true;
}

// Its place is behind what was sent before. Inline, it may begin in that: hosts send the last segments again as one,
// and what is new of it belongs into the stream.
bool TcpTracker::fin_fits(const Segment& segment) noexcept {
  const TcpStream& mine = segment.mine();
  const bool goes_on =
      segment.session->inline_ && before(segment.sequence, mine.next) && !before(segment.end(), mine.next);
  return (goes_on || !before(segment.sequence, mine.next)) && !after(segment.sequence, mine.last_ack + mine.window);
}

// Inline: whatever brings bytes that the stream does not have is not to reach a host that may take them. So it is only
// where this watcher knows what the hosts know: it has seen both begin.
bool TcpTracker::may_pass(const Segment& segment, bool valid) noexcept {
  const TcpSession& session = *segment.session;
  const TcpStream& mine = segment.mine();
  const bool both_began = (session.flags_seen_[0] & session.flags_seen_[1] & TcpHeader::kSyn) != 0;
  if (session.midstream_ || session.async_ || !both_began) return true;
  // What comes with a SYN, or with a RST that is taken, no application is given (but by fast open, which the stream
  // has). And a host answers to a SYN that it does not expect (RFC 5961 §4).
  if (segment.has(TcpHeader::kSyn) || (valid && segment.has(TcpHeader::kRst))) return true;
  if (segment.outcome.early) return false;
  if (!segment.payload.empty()) {
    if (segment.outcome.payload_in_stream || segment.outcome.bytes_refused || mine.depth_reached) return true;
    // Sent again: acknowledged, or as it was.
    if (not_after(segment.end(), mine.last_ack)) return true;
    Bytes bytes = segment.payload;
    std::uint32_t sequence = segment.sequence;
    if (before(sequence, mine.last_ack)) {
      bytes = bytes.subspan(mine.last_ack - sequence);
      sequence = mine.last_ack;
    }
    const std::int64_t offset = mine.offset_of(sequence);
    return offset >= 0 && mine.buffer.holds(static_cast<std::uint64_t>(offset), bytes);
  }
  // Without bytes, what is not valid shows the host nothing; but a RST ends its connection. To one in its window, a
  // host answers (RFC 5961 §3).
  if (valid || !segment.has(TcpHeader::kRst)) return true;
  return not_before(segment.sequence, mine.last_ack) && before(segment.sequence, mine.next + mine.window);
}

// Old news: a later packet has already acknowledged more.
bool TcpTracker::is_outdated_ack(const Segment& segment) noexcept {
  if (!segment.is_bare() || !segment.has(TcpHeader::kAck) || segment.session->state_ < TcpState::established) {
    return false;
  }
  const TcpStream& other = segment.other();
  return before(segment.ack, other.last_ack) && segment.sequence == segment.mine().next &&
         !before(segment.ack, other.last_ack - other.window);
}

}  // namespace penstock::stack
