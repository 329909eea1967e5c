// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// A packet's way: read, checked for what is no news, given to the state's function, its data kept in the stream.

#include "stack/tcp_tracker.h"

#include <algorithm>
#include <new>

namespace penstock::stack {
namespace {

/// As often may a direction have urgent bytes, before segments with more of them are dropped (Suricata's limit).
constexpr std::uint32_t kMostUrgent = 65535;

constexpr std::uint8_t kCongestionFlags =
    0xc0;  // CWR, ECE: hosts of today begin connections with them (RFC 3168 §6.1.1)

}  // namespace

TcpOutcome TcpTracker::track(Flow& flow, const DecodedPacket& packet, Direction direction) noexcept {
  TcpOutcome outcome;
  const auto& header = *reinterpret_cast<const TcpHeader*>(packet.transport.data());
  Segment segment{.flow = flow, .direction = direction, .outcome = outcome};
  segment.session = flow.tcp;
  segment.sequence = header.sequence.value();
  segment.ack = header.acknowledgment.value();
  segment.window = header.window.value();
  segment.urgent = header.urgent.value();
  segment.flags = header.flags;
  segment.payload = packet.payload;
  segment.options = read_tcp_options(packet.transport.subspan(sizeof(TcpHeader)));
  segment.time_s = static_cast<std::uint32_t>(packet.timestamp_ns / 1'000'000'000U);

  if (!segment.has(TcpHeader::kAck) && segment.ack != 0) segment.tell(TcpEvent::broken_ack);
  if (segment.has_all(TcpHeader::kSyn | TcpHeader::kFin)) segment.tell(TcpEvent::fin_with_syn);

  if (segment.session == nullptr || segment.session->state_ == TcpState::none) {
    without_session(segment);
    return outcome;
  }
  TcpSession& session = *segment.session;
  session.flags_seen_[static_cast<std::size_t>(direction)] |= segment.flags;
  if (session.async_ && session.flags_seen_[0] != 0 && session.flags_seen_[1] != 0) session.async_ = false;

  const bool keep_alive = is_keep_alive(segment);
  const bool keep_alive_ack = !keep_alive && is_keep_alive_ack(segment);
  if (!keep_alive) {
    segment.mine().kept_alive = false;
    if (keep_alive_ack) segment.other().kept_alive = false;
  }
  const bool passed_over = keep_alive || keep_alive_ack ||
                           (!is_shutdown_ack(segment) && !is_window_update(segment) &&
                            (is_bad_window_update(segment) || is_outdated_ack(segment)));
  const bool valid = passed_over || in_state(segment, session.state_);
  outcome.invalid = options_.inline_streams && !may_pass(segment, valid);
  if (!valid) return outcome;

  // A host that goes on behind its own RST has not sent that.
  if (!segment.has(TcpHeader::kRst) && segment.other().reset_by_other) {
    segment.other().reset_by_other = false;
    segment.tell(TcpEvent::suspected_rst_injection);
  }
  return outcome;
}

bool TcpTracker::begins_anew(const Flow& flow, const DecodedPacket& packet, Direction direction) const noexcept {
  const auto& header = *reinterpret_cast<const TcpHeader*>(packet.transport.data());
  const auto flags = static_cast<std::uint8_t>(header.flags & ~kCongestionFlags);
  const bool syn = flags == TcpHeader::kSyn;
  const bool synack = flags == (TcpHeader::kSyn | TcpHeader::kAck) && (options_.midstream || options_.async_oneside);
  if (!syn && !synack) return false;
  if (flow.tcp == nullptr) return true;  // the flow was seen from its middle on, and that was another connection
  const TcpSession& session = *flow.tcp;
  const Direction first = syn ? Direction::to_server : Direction::to_client;
  if (direction == first && session.stream(first).isn == header.sequence.value()) return false;  // sent again
  return session.state_ >= TcpState::last_ack || session.state_ == TcpState::none;
}

TcpSession* TcpTracker::start(Segment& segment) noexcept {
  if (segment.flow.tcp == nullptr) {
    static_assert(sizeof(TcpSession) <= std::size_t{1} << kSessionOrder);
    std::byte* const piece = session_memory_.take(kSessionOrder);
    if (piece == nullptr) {
      segment.outcome.session_refused = true;
      return nullptr;
    }
    segment.flow.tcp = new (piece) TcpSession;
    ++counters_.tcp_sessions;
  }
  TcpSession* const session = segment.flow.tcp;
  session->chunk_bytes_ = options_.chunk_bytes;
  session->seam_bytes_ = options_.seam_bytes;
  session->inline_ = options_.inline_streams;
  session->flags_seen_[static_cast<std::size_t>(segment.direction)] |= segment.flags;
  segment.session = session;
  return session;
}

void TcpTracker::release(Flow& flow) noexcept {
  if (flow.tcp == nullptr) return;
  for (TcpStream& stream : flow.tcp->streams_) stream.buffer.clear(stream_memory_);
  free_queue(*flow.tcp);
  flow.tcp->~TcpSession();
  session_memory_.give(reinterpret_cast<std::byte*>(flow.tcp), kSessionOrder);
  flow.tcp = nullptr;
}

// Acknowledged data are what the other host has: of the stream that a packet acknowledges, holes are looked for.
// Inline, and when a direction ends, of the one that it carries.
void TcpTracker::take_segment(Segment& segment) noexcept {
  TcpSession& session = *segment.session;
  const bool ends =
      segment.has(TcpHeader::kRst) || (segment.has(TcpHeader::kFin) && session.state_ > TcpState::time_wait);
  const bool both = (segment.has_all(TcpHeader::kFin | TcpHeader::kAck) && session.state_ > TcpState::time_wait) ||
                    (session.state_ == TcpState::closed && !segment.has(TcpHeader::kRst));
  if (!session.inline_ && (!ends || both)) {
    look_for_gaps(segment, segment.other());
    watch(session, opposite(segment.direction));
  }
  if (!segment.payload.empty()) take_data(segment);
  if (session.inline_ || ends || both) {
    look_for_gaps(segment, segment.mine());
    watch(session, segment.direction);
  }
}

void TcpTracker::watch(TcpSession& session, Direction direction) noexcept {
  if (!options_.pass_over_encrypted || session.encryption_.done()) return;
  TcpStream& stream = session.streams_[static_cast<std::size_t>(direction)];
  const std::uint64_t right_edge = stream.buffer.right_edge();
  const std::uint64_t limit = session.inline_ ? right_edge : std::min(stream.acked(), right_edge);
  while (stream.watched < limit && !session.encryption_.done()) {
    const StreamBuffer::Run run = stream.buffer.run_from(stream.watched);
    if (run.bytes.empty()) return;
    if (run.offset > stream.watched) {
      if (run.offset < limit) session.encryption_.give_up();
      return;
    }
    const std::uint64_t until = std::min(limit, run.end());
    const Bytes bytes = run.bytes.first(static_cast<std::size_t>(until - stream.watched));
    if (session.encryption_.read(direction, bytes)) stream.record_whole = true;
    stream.watched = until;
  }
}

void TcpTracker::take_data(Segment& segment) noexcept {
  TcpStream& mine = segment.mine();
  if (mine.depth_reached) return;
  std::uint32_t sequence = segment.sequence + (segment.has(TcpHeader::kSyn) ? 1U : 0U);
  Bytes data = segment.payload;
  bool kept = true;
  std::uint64_t ahead = 0, ahead_end = 0;  // of the urgent byte
  if (segment.has(TcpHeader::kUrg) && segment.urgent != 0 && segment.urgent <= data.size()) {
    // The urgent byte goes another way to the application: the stream closes over it (RFC 9293 §3.8.5 as hosts have
    // it).
    const std::uint32_t urgent = sequence + segment.urgent - 1U;
    const bool known =
        std::find(mine.urgent.begin(), mine.urgent.begin() + std::min(mine.urgent_count, TcpStream::kUrgentKept),
                  urgent) != mine.urgent.begin() + std::min(mine.urgent_count, TcpStream::kUrgentKept);
    if (!known && mine.urgent_count >= kMostUrgent) {
      segment.tell(TcpEvent::urgent_limit_reached);
      return;
    }
    if (segment.urgent > 1) {
      kept = keep(segment, sequence, data.first(segment.urgent - 1U));
      ahead = mine.latest_begin;
      ahead_end = mine.latest_end;
    }
    if (!known && (mine.urgent_count == 0 || after(urgent, mine.urgent[0]))) {
      std::copy_backward(mine.urgent.begin(), mine.urgent.end() - 1, mine.urgent.end());
      mine.urgent[0] = urgent;
      ++mine.urgent_count;
    }
    sequence = urgent + 1;
    data = data.subspan(segment.urgent);
  }
  if (!data.empty()) kept = keep(segment, sequence, data) && kept;
  // Both parts are one where inline streams are inspected.
  if (ahead_end > ahead) {
    if (mine.latest_begin == mine.latest_end) mine.latest_end = ahead_end;  // what is behind was there
    mine.latest_begin = ahead;
  }
  segment.outcome.payload_in_stream = kept;
}

bool TcpTracker::keep(Segment& segment, std::uint32_t sequence, Bytes data) noexcept {
  TcpStream& mine = segment.mine();
  std::int64_t offset = mine.offset_of(sequence);
  const std::int64_t end = offset + static_cast<std::int64_t>(data.size());
  if (end <= static_cast<std::int64_t>(mine.buffer.begin())) {
    segment.tell(TcpEvent::segment_before_base);
    return true;
  }
  if (offset < 0) {  // before the SYN: no data of the stream
    data = data.subspan(static_cast<std::size_t>(-offset));
    offset = 0;
  }
  if (options_.stream_depth != 0 && end >= static_cast<std::int64_t>(options_.stream_depth)) {
    mine.depth_reached = true;
    ++counters_.stream_depth_reached;
    segment.tell(TcpEvent::depth_reached);
    if (offset >= static_cast<std::int64_t>(options_.stream_depth)) return true;
    data = data.first(std::min<std::size_t>(data.size(), options_.stream_depth - static_cast<std::size_t>(offset)));
  }
  const auto from = static_cast<std::uint64_t>(offset);
  std::uint64_t news_begin = std::max(from, mine.buffer.begin());
  std::uint64_t news_end = from + data.size();
  if (segment.session->inline_) {
    // What was there has been inspected, unless this changes it.
    const auto was_there = [&](std::uint64_t at) { return mine.buffer.whole_run_at(at); };
    if (const auto run = was_there(news_begin); !run.bytes.empty()) news_begin = std::min(run.end(), news_end);
    if (news_begin < news_end) {
      if (const auto run = was_there(news_end - 1); !run.bytes.empty()) news_end = std::max(run.offset, news_begin);
    }
  }
  // Inline, what came first has passed, and nothing else will in its place.
  const OverlapPolicy policy = options_.inline_streams ? OverlapPolicy::first : options_.stream_policy;
  const StreamBuffer::Inserted inserted = mine.buffer.insert(stream_memory_, from, data, policy);
  if (!inserted.kept) {
    ++counters_.stream_memory_refused;
    segment.outcome.bytes_refused = true;
    segment.tell(TcpEvent::memory_limit);
    return false;
  }
  counters_.stream_bytes += data.size();
  if (inserted.different) {
    news_begin = std::max(from, mine.buffer.begin());
    news_end = from + data.size();
    segment.outcome.different = true;
    segment.tell(TcpEvent::overlap_with_different_data);
  }
  mine.latest_begin = news_begin;
  mine.latest_end = news_end;
  return true;
}

// A hole whose bytes were acknowledged is lost: this watcher will never see them.
void TcpTracker::look_for_gaps(Segment& segment, TcpStream& stream) noexcept {
  const bool fin_counts = segment.session->state_ >= TcpState::fin_wait1;
  std::uint64_t acked = stream.acked();
  if (fin_counts && acked > 0) --acked;
  for (int holes = 0; holes < 4; ++holes) {
    const StreamBuffer::Run run = stream.buffer.run_from(stream.gap_checked);
    if (run.bytes.empty()) return;
    if (run.offset > stream.gap_checked) {
      const bool lost = acked > stream.gap_checked && !(after(stream.last_ack, stream.next) && run.offset >= acked);
      if (!lost) return;
      ++counters_.stream_gaps;
      segment.tell(TcpEvent::sequence_gap);
      stream.gap_checked = run.offset;
    }
    const std::uint64_t end = segment.session->inline_ ? run.end() : std::min(run.end(), std::max(acked, run.offset));
    stream.gap_checked = std::max(stream.gap_checked, end);
    if (end < run.end()) return;
  }
}

bool TcpTracker::has_uninspected(const TcpSession& session, Direction direction) noexcept {
  const TcpStream& stream = session.stream(direction);
  return stream.buffer.right_edge() > stream.inspected && !session.encrypted();
}

bool TcpTracker::stream_ready(const TcpSession& session, Direction direction, bool payload_in_stream) const noexcept {
  const TcpStream& stream = session.stream(direction);
  if (session.inline_) return payload_in_stream && stream.latest_end > stream.latest_begin;
  if (stream.buffer.empty() || stream.buffer.right_edge() <= stream.inspected) return false;
  const std::uint64_t acked = stream.acked();
  if (acked <= stream.inspected) return false;
  // Of a session that has just become encrypted: what came before it was.
  const bool at_once =
      stream.depth_reached || stream.record_whole || session.encrypted() || session.state_ > TcpState::time_wait;
  if (!at_once && acked - stream.inspected < options_.chunk_bytes) return false;
  // What was acknowledged may not have been seen.
  const StreamBuffer::Run run = stream.buffer.run_from(stream.inspected);
  return !run.bytes.empty() && run.offset < acked;
}

void TcpTracker::settle(TcpSession& session, Direction direction, bool ready, bool to_end,
                        std::uint64_t inspected) noexcept {
  TcpStream& stream = session.streams_[static_cast<std::size_t>(direction)];
  if (ready) {
    if (stream.inspected == inspected) session.inspect(direction, to_end, [](const StreamChunk&) noexcept {});
    stream.record_whole = false;
  }
  if (session.encrypted()) stream.inspected = std::max(stream.inspected, stream.acked());
  if (stream.buffer.empty()) {
    stream.buffer.drop_before(stream_memory_, stream.inspected);
  } else {
    // Inline, what is not acknowledged may come again, and differ; and a hole may be filled far behind what was
    // inspected.
    std::uint64_t wanted = session.seam_bytes_;
    std::uint64_t from = stream.inspected;
    if (session.inline_) {
      wanted = std::max<std::uint64_t>(wanted, session.chunk_bytes_);
      from = std::min(from, stream.acked());
    }
    stream.buffer.drop_before(stream_memory_, from - std::min(from, wanted));
  }
  // Sequence numbers are told apart within 2^31 of the base.
  const std::int64_t ahead = sequence_distance(stream.last_ack, stream.base);
  if (ahead > (1 << 20)) {
    stream.base_offset += static_cast<std::uint64_t>(ahead);
    stream.base = stream.last_ack;
  }
}

}  // namespace penstock::stack
