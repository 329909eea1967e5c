// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Header prediction (Van Jacobson, "TCP header prediction", 1990): a fast path for the next in-order segment of an
// established connection, which passes all checks. The result is the same as that of TcpTracker::track_checked, without
// testing for every special case.

#include "stack/tcp_tracker.h"

namespace penstock::stack {

// Whether the segment is next in order, within the window, and its ACK is neither old nor for unseen data. The session
// must have completed its handshake and have no contested bytes. Changes nothing.
bool TcpTracker::is_expected(const Segment& segment) const noexcept {
  const TcpSession& session = *segment.session;
  if (session.state_ != TcpState::established || session.midstream_ || session.async_ ||
      session.handshakes_ != nullptr) {
    return false;
  }
  if ((segment.flags & ~TcpHeader::kPsh) != TcpHeader::kAck) return false;
  const TcpStream& mine = segment.mine();
  const TcpStream& other = segment.other();
  if (mine.contested != nullptr || other.contested != nullptr) return false;
  if (mine.fin_sent || other.fin_sent || other.reset_by_other || other.kept_alive || mine.depth_reached) return false;

  if (segment.sequence != mine.next || before(segment.end(), mine.last_ack) || after(segment.end(), mine.next_win)) {
    return false;
  }
  if (before(segment.ack, other.last_ack) || after(segment.ack, other.next) || after(segment.ack, other.next_win)) {
    return false;
  }
  if (segment.length() == 1 && mine.window == 0) return false;  // a window probe
  if (is_early(segment)) return false;
  if (session.timestamps_ && segment.options.has_timestamp && !timestamp_goes_on(segment)) return false;

  if (segment.payload.empty()) return true;
  const std::int64_t offset = mine.offset_of(segment.sequence);
  if (offset < 0 || static_cast<std::uint64_t>(offset) < mine.buffer.right_edge()) return false;
  const auto end = static_cast<std::uint64_t>(offset) + segment.length();
  return options_.stream_depth == 0 || end < options_.stream_depth;
}

/// Whether timestamp_valid() accepts the segment's timestamp under every policy.
bool TcpTracker::timestamp_goes_on(const Segment& segment) noexcept {
  const TcpStream& mine = segment.mine();
  const std::uint32_t timestamp = segment.options.timestamp;
  return !mine.zero_timestamp && timestamp != 0 && not_before(timestamp, mine.timestamp) &&
         segment.time_s <= mine.timestamp_s + kTimestampAge;
}

void TcpTracker::take_expected(Segment& segment) noexcept {
  TcpSession& session = *segment.session;
  TcpStream& mine = segment.mine();
  TcpStream& other = segment.other();
  session.flags_seen_[static_cast<std::size_t>(segment.direction)] |= segment.flags;
  mine.kept_alive = false;
  mine.next = segment.end();
  other.last_ack = segment.ack;
  if (segment.to_client()) {
    session.confirmed_ = true;
    if (not_before(segment.ack, other.isn + 1)) session.begin_confirmed_ = true;
  }
  other.grant(segment.scaled_window());
  note_timestamp(segment);

  if (!session.inline_) {
    // Only an ACK of new data can reveal lost bytes.
    if (other.acked() > other.gap_checked) look_for_gaps(segment, other);
    watch(session, opposite(segment.direction));
  }
  if (!segment.payload.empty()) {
    const auto from = static_cast<std::uint64_t>(mine.offset_of(segment.sequence));
    // Nothing overlaps, so the policy does not matter.
    if (mine.buffer.insert(stream_memory_, from, segment.payload, OverlapPolicy::first).kept) {
      counters_.stream_bytes += segment.payload.size();
      segment.outcome.payload_in_stream = true;
      if (session.inline_) {
        mine.latest_begin = from;
        mine.latest_end = from + segment.payload.size();
      }
    } else {
      refuse_bytes(segment);
    }
  }
  if (session.inline_) {
    look_for_gaps(segment, mine);
    watch(session, segment.direction);
  }
}

}  // namespace penstock::stack
