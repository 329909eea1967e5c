// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Checks whether a packet belongs to its session.

#include "stack/tcp_tracker.h"

namespace penstock::stack {

// PAWS (RFC 7323 §5), with the deviations of the operating system that the policy names.
bool TcpTracker::timestamp_valid(Segment& segment) noexcept {
  TcpSession& session = *segment.session;
  if (!session.timestamps_ || !segment.options.has_timestamp) return true;
  TcpStream& mine = segment.mine();
  const std::uint32_t timestamp = segment.options.timestamp;
  const OverlapPolicy host = options_.stream_policy;
  // Inline, accept the segment anyway. Hosts differ in what they consider too old (a clock stuck at 0, reordered
  // segments), and once data is in the stream, different data can no longer pass in its place.
  const auto wrong = [&]() noexcept {
    segment.tell(TcpEvent::invalid_timestamp);
    return session.inline_ && !segment.has(TcpHeader::kRst);
  };
  if (mine.zero_timestamp) {
    if (host == OverlapPolicy::linux_host) {  // Linux: timestamps are no longer checked
      session.timestamps_ = false;
      return true;
    }
    if (host == OverlapPolicy::windows) {  // checked again from the next packet on
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
    // An ACK that is at most a window old may just have been delayed.
    if (stream.window != 0 && before(ack, stream.last_ack - stream.window))
      return segment.refuse(TcpEvent::invalid_ack);
    return true;
  }
  if (segment.session->async_) return true;
  if (segment.session->state_ > TcpState::syn_sent && after(ack, stream.next_win)) {
    return segment.refuse(TcpEvent::invalid_ack);
  }
  // A RST in reply to a SYN: no window is known yet.
  if (segment.session->state_ == TcpState::syn_sent && segment.to_client() && segment.has(TcpHeader::kRst) &&
      ack == stream.isn + 1) {
    return true;
  }
  return segment.refuse(TcpEvent::invalid_ack);
}

// Hosts accept a RST whose sequence number is the one that they expect next.
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
      case OverlapPolicy::linux_host: {  // RFC 5961 §3.2; any other RST in the window gets a challenge ACK
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

// RFC 9293 §3.8.4: sequence number one before the next, with one byte of data or none.
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

// The ACK of the other host's FIN, sent at or after the sender's own end of data.
bool TcpTracker::is_shutdown_ack(const Segment& segment) noexcept {
  const TcpState state = segment.session->state_;
  if (!segment.is_bare() || !segment.has(TcpHeader::kAck)) return false;
  if (state != TcpState::time_wait && state != TcpState::close_wait && state != TcpState::last_ack) return false;
  const TcpStream& mine = segment.mine();
  return (segment.sequence == mine.next || (mine.fin_sent && segment.sequence == mine.next + 1)) &&
         segment.ack == segment.other().next + 1;
}

// The window shrinks, and both sequence and acknowledgment number are ahead of what was seen: forged, or heavy loss.
bool TcpTracker::is_bad_window_update(Segment& segment) noexcept {
  const TcpState state = segment.session->state_;
  if (!segment.is_bare() || segment.window == 0) return false;
  if (state < TcpState::established || state == TcpState::closed) return false;
  const TcpStream& other = segment.other();
  const std::uint32_t window = segment.scaled_window();
  if (window >= other.window || !after(segment.ack, other.next) || !after(segment.sequence, segment.mine().next)) {
    return false;
  }
  // The one unseen byte that it acknowledges is the FIN.
  if (segment.ack == other.next + 1 && other.fin_sent) return false;
  segment.tell(TcpEvent::bad_window_update);
  return true;
}

// A FIN belongs after all data sent so far. Inline, its segment may begin within that data: hosts coalesce the last
// segments when they retransmit, and the new part belongs in the stream.
bool TcpTracker::fin_fits(const Segment& segment) noexcept {
  const TcpStream& mine = segment.mine();
  const bool goes_on =
      segment.session->inline_ && before(segment.sequence, mine.next) && !before(segment.end(), mine.next);
  return (goes_on || !before(segment.sequence, mine.next)) && !after(segment.sequence, mine.last_ack + mine.window);
}

// Inline: a packet with bytes that are not in the stream must not reach a host that might accept them. This is enforced
// only if the tracker has seen both hosts start the connection, so that it knows as much as they do.
bool TcpTracker::may_pass(const Segment& segment, bool valid) noexcept {
  const TcpSession& session = *segment.session;
  const TcpStream& mine = segment.mine();
  const bool both_began = (session.flags_seen_[0] & session.flags_seen_[1] & TcpHeader::kSyn) != 0;
  if (session.midstream_ || session.async_ || !both_began) return true;
  // Applications never receive the payload of a SYN (except with TCP Fast Open, where the stream has it) or of an
  // accepted RST. And a host must be able to reply to an unexpected SYN (RFC 5961 §4).
  if (segment.has(TcpHeader::kSyn) || (valid && segment.has(TcpHeader::kRst))) return true;
  if (segment.outcome.early) return false;
  if (!segment.payload.empty()) {
    if (segment.outcome.payload_in_stream || segment.outcome.bytes_refused || mine.depth_reached) return true;
    // A retransmission: already acknowledged, or with the same content.
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
  // An invalid packet without payload is harmless, unless it is a RST, which could end the connection. A RST in the
  // window may pass, since the host replies with a challenge ACK (RFC 5961 §3).
  if (valid || !segment.has(TcpHeader::kRst)) return true;
  return not_before(segment.sequence, mine.last_ack) && before(segment.sequence, mine.next + mine.window);
}

// A later packet has already acknowledged more.
bool TcpTracker::is_outdated_ack(const Segment& segment) noexcept {
  if (!segment.is_bare() || !segment.has(TcpHeader::kAck) || segment.session->state_ < TcpState::established) {
    return false;
  }
  const TcpStream& other = segment.other();
  return before(segment.ack, other.last_ack) && segment.sequence == segment.mine().next &&
         !before(segment.ack, other.last_ack - other.window);
}

}  // namespace penstock::stack
