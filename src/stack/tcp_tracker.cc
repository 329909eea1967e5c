// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// For each packet: read the header, sort out segments that carry nothing new, run the function of the state, and add
// the payload to the stream.

#include "stack/tcp_tracker.h"

#include <algorithm>
#include <memory>
#include <new>

#include "base/nanoseconds.h"

namespace penstock::stack {
namespace {

/// Data further ahead of the acknowledged data than this cannot belong to the connection: it exceeds the largest window
/// (RFC 7323 §2.3).
constexpr std::int64_t kWidestWindow = 1 << 30;
/// A server that answers with a SYN cookie stores nothing about the SYN. Two bits of the cookie encode an MSS, so Linux
/// also accepts an ACK whose sequence number is off by up to this many bytes. The server's stream then begins there.
constexpr std::int64_t kMostCookieShift = 3;

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
  segment.time_s = static_cast<std::uint32_t>(packet.timestamp_ns / kNsPerSecond);

  if (options_.shortcuts && segment.session != nullptr && is_expected(segment)) {
    take_expected(segment);
  } else {
    track_checked(segment);
  }
  return outcome;
}

void TcpTracker::track_checked(Segment& segment) noexcept {
  TcpOutcome& outcome = segment.outcome;
  if (!segment.has(TcpHeader::kAck) && segment.ack != 0) segment.tell(TcpEvent::broken_ack);
  if (segment.has_all(TcpHeader::kSyn | TcpHeader::kFin)) segment.tell(TcpEvent::fin_with_syn);

  if (segment.session == nullptr || segment.session->state_ == TcpState::none) {
    without_session(segment);
    return;
  }
  TcpSession& session = *segment.session;
  session.flags_seen_[static_cast<std::size_t>(segment.direction)] |= segment.flags;
  if (session.async_ && session.flags_seen_[0] != 0 && session.flags_seen_[1] != 0) session.async_ = false;

  if (session.state_ >= TcpState::established && segment.has(TcpHeader::kSyn) &&
      !segment.has(TcpHeader::kRst | TcpHeader::kFin) &&
      !(segment.has(TcpHeader::kAck) && segment.sequence == segment.mine().isn)) {
    note_handshake(segment);
  }
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
  if (segment.has(TcpHeader::kUrg) && options_.keep_streams) mark_urgent(segment);
  if (!session.inline_ && options_.keep_streams) {
    if (!segment.payload.empty() && !outcome.payload_in_stream) note_refused_data(segment);
    follow_acknowledgment(segment);
  }
  if (!valid) return;

  // A host that continues after its own RST did not send that RST.
  if (!segment.has(TcpHeader::kRst) && segment.other().reset_by_other) {
    segment.other().reset_by_other = false;
    segment.tell(TcpEvent::suspected_rst_injection);
  }
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
  for (TcpStream& stream : flow.tcp->streams_) clear(stream);
  free_handshakes(*flow.tcp);
  flow.tcp->~TcpSession();
  session_memory_.give(reinterpret_cast<std::byte*>(flow.tcp), kSessionOrder);
  flow.tcp = nullptr;
}

// A packet acknowledges data of the other direction, so normally that stream is checked for holes. Inline, and at the
// end of a direction, the packet's own stream is checked.
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
  // Hosts discard the payload of a RST.
  if (!segment.payload.empty() && !segment.has(TcpHeader::kRst)) take_data(segment);
  if (session.inline_ || ends || both) {
    look_for_gaps(segment, segment.mine());
    watch(session, segment.direction);
  }
}

void TcpTracker::watch(TcpSession& session, Direction direction) noexcept {
  if (!options_.pass_over_encrypted || session.encryption_.done()) return;
  TcpStream& stream = session.streams_[static_cast<std::size_t>(direction)];
  const std::uint64_t right_edge = stream.buffer.right_edge();
  const std::uint64_t limit = session.inline_ ? right_edge : session.received(stream);
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
  if (segment.mine().depth_reached || !options_.keep_streams) return;
  const std::uint32_t sequence = segment.sequence + (segment.has(TcpHeader::kSyn) ? 1U : 0U);
  if (is_early(segment)) {
    segment.outcome.early = true;
    if (segment.session->inline_) return;
    if (segment.mine().offset_of(sequence) < 0) begin_earlier(segment.mine(), sequence);
  }
  segment.outcome.payload_in_stream = keep(segment, sequence, segment.payload);
}

// Client data before the byte that follows its SYN. A server with SYN cookies may accept it as the start of the stream,
// until its ACK shows which byte it expects first.
bool TcpTracker::is_early(const Segment& segment) noexcept {
  const TcpSession& session = *segment.session;
  if (!segment.to_server() || segment.payload.empty() || segment.has(TcpHeader::kSyn) || session.begin_confirmed_ ||
      session.midstream_ || session.async_) {
    return false;
  }
  const TcpStream& mine = segment.mine();
  if (!before(segment.sequence, mine.isn + 1)) return false;
  const std::int64_t offset = mine.offset_of(segment.sequence);
  if (offset >= 0) return true;  // the stream already begins even earlier
  return offset >= -kMostCookieShift && mine.buffer.right_edge() == 0 && mine.inspected == 0;
}

/// Moves the start of the stream back to this sequence number. It is unknown whether the receiver accepted the bytes
/// added. They are treated like urgent bytes: inspected both as part of the stream and not.
void TcpTracker::begin_earlier(TcpStream& stream, std::uint32_t sequence) noexcept {
  const auto bytes = static_cast<std::uint64_t>(-stream.offset_of(sequence));
  stream.base = sequence;
  if (stream.contested == nullptr) stream.contested = ContestedBytes::make(stream_memory_);
  if (stream.contested == nullptr) {
    ++counters_.contested_given_up;
    return;
  }
  stream.contested->shift(bytes);
  for (std::uint64_t at = 0; at < bytes; ++at) {
    if (stream.contested->add_urgent(at) == ContestedBytes::Added::displaced) ++counters_.contested_given_up;
  }
}

bool TcpTracker::keep(Segment& segment, std::uint32_t sequence, Bytes data) noexcept {
  TcpStream& mine = segment.mine();
  std::int64_t offset = mine.offset_of(sequence);
  const std::int64_t end = offset + static_cast<std::int64_t>(data.size());
  if (end <= static_cast<std::int64_t>(mine.buffer.begin())) {
    segment.tell(TcpEvent::segment_before_base);
    return true;
  }
  if (offset < 0) {  // before the SYN: not stream data
    data = data.subspan(static_cast<std::size_t>(-offset));
    offset = 0;
  }
  const auto depth = static_cast<std::int64_t>(options_.stream_depth);
  if (depth != 0 && end >= depth) {
    // Data far ahead may be bogus. The depth is reached only once all data before it has arrived.
    if (offset > static_cast<std::int64_t>(mine.in_order())) return false;
    mine.depth_reached = true;
    ++counters_.stream_depth_reached;
    segment.tell(TcpEvent::depth_reached);
    if (offset >= depth) return true;
    data = data.first(std::min<std::size_t>(data.size(), static_cast<std::size_t>(depth - offset)));
  }
  const auto from = static_cast<std::uint64_t>(offset);
  const bool kept = segment.session->inline_ ? keep_inline(segment, from, data) : keep_passive(segment, from, data);
  if (kept) {
    counters_.stream_bytes += data.size();
  } else {
    refuse_bytes(segment);
  }
  return kept;
}

/// Counts and reports bytes for which stream memory was full.
void TcpTracker::refuse_bytes(Segment& segment) noexcept {
  ++counters_.stream_memory_refused;
  segment.outcome.bytes_refused = true;
  segment.tell(TcpEvent::memory_limit);
}

// Data that arrived first has been forwarded, so different data may no longer replace it.
bool TcpTracker::keep_inline(Segment& segment, std::uint64_t from, Bytes data) noexcept {
  TcpStream& mine = segment.mine();
  const StreamBuffer::Range all{std::max(from, mine.buffer.begin()), from + data.size()};
  // Only the part that was not in the buffer yet needs inspection, unless the segment has different content.
  StreamBuffer::Range news = mine.buffer.missing(all);
  const StreamBuffer::Inserted inserted = mine.buffer.insert(stream_memory_, from, data, OverlapPolicy::first);
  if (!inserted.kept) return false;
  if (inserted.different) {
    news = all;
    segment.outcome.different = true;
    segment.tell(TcpEvent::overlap_with_different_data);
  }
  mine.latest_begin = news.begin;
  mine.latest_end = news.end;
  return true;
}

// Data that the receiver has acknowledged is final. With Linux, so is data received in order, since it has been queued
// for the application. For any other data that arrived with different contents, only the receiver knows which it has.
bool TcpTracker::keep_passive(Segment& segment, std::uint64_t from, Bytes data) noexcept {
  TcpStream& mine = segment.mine();
  if (from >= mine.buffer.right_edge() && mine.contested == nullptr) {  // nearly always
    return mine.buffer.insert(stream_memory_, from, data, options_.stream_policy).kept;
  }
  const std::uint64_t end = from + data.size();
  const std::uint64_t acked = mine.acked();
  const bool as_linux = options_.stream_policy == OverlapPolicy::linux_host;
  const std::uint64_t final = std::max(as_linux ? mine.in_order() : acked, mine.inspected);
  if (const std::uint64_t open = std::max(from, acked); open < end) {
    const Bytes given = data.subspan(static_cast<std::size_t>(open - from));
    const bool differs = contest_those_there(mine, open, given);
    if (differs || (mine.contested != nullptr && mine.contested->contradicts(open, given))) {
      contest(mine, open, given, ContestedBytes::Kind::taken);
    }
  }
  const StreamBuffer::Range late = missing_before_inspected(mine, {std::max(from, mine.buffer.begin()), end});
  const StreamBuffer::Inserted inserted = mine.buffer.insert(stream_memory_, from, data, options_.stream_policy, final);
  if (!inserted.kept) return false;
  if (inserted.different) segment.tell(TcpEvent::overlap_with_different_data);
  mine.note_late(late);
  return true;
}

/// The part of the range that would be late: it fills a hole before the inspected offset.
StreamBuffer::Range TcpTracker::missing_before_inspected(const TcpStream& stream, StreamBuffer::Range range) noexcept {
  range.end = std::min(range.end, stream.inspected);
  return range.begin < range.end ? stream.buffer.missing(range) : StreamBuffer::Range{};
}

// ---- Contested bytes: what the receiver may have instead

void TcpTracker::contest(TcpStream& stream, std::uint64_t offset, Bytes bytes, ContestedBytes::Kind kind) noexcept {
  if (!options_.every_version) return;
  if (stream.contested == nullptr) stream.contested = ContestedBytes::make(stream_memory_);
  const ContestedBytes::Added added = stream.contested == nullptr
                                          ? ContestedBytes::Added::no_room
                                          : stream.contested->add(stream_memory_, offset, bytes, kind);
  if (added != ContestedBytes::Added::known) ++counters_.contested_segments;
  if (added == ContestedBytes::Added::displaced || added == ContestedBytes::Added::no_room) {
    ++counters_.contested_given_up;
  }
}

/// Saves the buffered segments that these bytes contradict as versions. True if there are any.
bool TcpTracker::contest_those_there(TcpStream& stream, std::uint64_t offset, Bytes bytes) noexcept {
  bool differs = false;
  stream.buffer.for_each_difference(offset, bytes, [&](std::uint64_t begin, Bytes there, Bytes) noexcept {
    for (std::uint64_t at = begin; at < begin + there.size();) {
      const StreamBuffer::Run old = stream.buffer.segment_at(at);
      contest(stream, old.offset, old.bytes, ContestedBytes::Kind::taken);
      at = old.end();
    }
    differs = true;
  });
  return differs;
}

// A less strict host may accept data that the session rejects. Its acknowledgment will show whether it did.
void TcpTracker::note_refused_data(Segment& segment) noexcept {
  TcpStream& mine = segment.mine();
  if (segment.has(TcpHeader::kSyn | TcpHeader::kRst) || segment.outcome.bytes_refused || mine.depth_reached ||
      segment.session->state_ < TcpState::syn_received) {
    return;
  }
  const auto acked = static_cast<std::int64_t>(mine.acked());
  std::int64_t offset = mine.offset_of(segment.sequence);
  const std::int64_t end = offset + static_cast<std::int64_t>(segment.length());
  if (end <= acked || offset > acked + kWidestWindow) return;
  if (options_.stream_depth != 0 && end > static_cast<std::int64_t>(options_.stream_depth)) return;
  Bytes data = segment.payload;
  if (offset < acked) {
    data = data.subspan(static_cast<std::size_t>(acked - offset));
    offset = acked;
  }
  const auto from = static_cast<std::uint64_t>(offset);
  if (mine.buffer.holds(from, data)) return;
  contest_those_there(mine, from, data);
  contest(mine, from, data, ContestedBytes::Kind::refused);
}

// RFC 6093: the urgent pointer may refer to a byte of a later segment. 0 refers to the first byte, as in Linux.
void TcpTracker::mark_urgent(Segment& segment) noexcept {
  TcpStream& mine = segment.mine();
  if (segment.has(TcpHeader::kSyn | TcpHeader::kRst) || segment.session->state_ < TcpState::syn_received) return;
  const std::uint32_t sequence = segment.sequence + (segment.urgent == 0 ? 0U : segment.urgent - 1U);
  const std::int64_t offset = mine.offset_of(sequence);
  if (offset < static_cast<std::int64_t>(mine.acked()) && !segment.outcome.payload_in_stream) return;
  if (offset < 0 || static_cast<std::uint64_t>(offset) < mine.buffer.begin()) return;
  if (mine.contested == nullptr) mine.contested = ContestedBytes::make(stream_memory_);
  if (mine.contested == nullptr ||
      mine.contested->add_urgent(static_cast<std::uint64_t>(offset)) == ContestedBytes::Added::displaced) {
    ++counters_.contested_given_up;
  }
}

// The receiver has acknowledged bytes of a segment that the session rejected, so it has them. They fill the hole in the
// stream, and the session continues.
void TcpTracker::follow_acknowledgment(Segment& segment) noexcept {
  TcpStream& stream = segment.other();
  if (stream.contested == nullptr || !segment.has(TcpHeader::kAck)) return;
  ContestedBytes& contested = *stream.contested;
  const std::uint64_t edge = std::max(stream.buffer.right_edge(), contested.right_edge());
  const std::int64_t ack = stream.offset_of(segment.ack);
  if (ack <= 0 || static_cast<std::uint64_t>(ack) > edge + 1) return;  // + 1 for a FIN
  const std::uint64_t acked = std::min(static_cast<std::uint64_t>(ack), edge);
  if (!contested.acknowledge(acked)) return;
  bool filled = false;
  for (const ContestedBytes::Version& version : contested.versions()) {
    if (version.offset >= acked) continue;
    const std::uint64_t from = std::max(version.offset, stream.buffer.begin());
    const std::uint64_t end = std::min(version.end(), acked);
    if (from >= end || stream.buffer.has(from, end - from)) continue;
    const StreamBuffer::Range late = missing_before_inspected(stream, {from, end});
    const Bytes bytes =
        version.bytes().subspan(static_cast<std::size_t>(from - version.offset), static_cast<std::size_t>(end - from));
    if (!stream.buffer.insert(stream_memory_, from, bytes, OverlapPolicy::first).kept) {
      ++counters_.stream_memory_refused;
      continue;
    }
    filled = true;
    stream.note_late(late);
  }
  if (!filled) return;
  advance(stream.next, segment.ack);
  advance(stream.last_ack, segment.ack);
  segment.mine().reset_by_other = stream.reset_by_other = false;
  const TcpState state = segment.session->state_;
  if (state == TcpState::syn_received || state > TcpState::fin_wait2) set_state(segment, TcpState::established);
}

void TcpTracker::clear(TcpStream& stream) noexcept {
  stream.buffer.clear(stream_memory_);
  ContestedBytes::free(stream_memory_, stream.contested);
  const std::uint8_t beginnings = stream.beginnings;
  std::destroy_at(&stream);
  std::construct_at(&stream);
  stream.beginnings = beginnings;
}

// The bytes of a hole that was acknowledged were lost to the tracker and will not be retransmitted.
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
  if (session.encrypted()) return false;
  return stream.buffer.right_edge() > stream.inspected || stream.latest_end > stream.latest_begin ||
         stream.contested_waits(stream.buffer.right_edge());
}

bool TcpTracker::stream_ready(const TcpSession& session, Direction direction, bool payload_in_stream) const noexcept {
  const TcpStream& stream = session.stream(direction);
  if (session.inline_) return payload_in_stream && session.has_news(stream);
  if (stream.buffer.empty()) return false;
  if (stream.latest_end > stream.latest_begin) return true;
  const std::uint64_t received = session.received(stream);
  if (stream.contested_waits(received)) return true;
  if (received <= stream.inspected) return false;
  // If the session has just become encrypted, the data before that is inspected now.
  const bool at_once =
      stream.depth_reached || stream.record_whole || session.encrypted() || session.state_ > TcpState::time_wait;
  if (!at_once && received - stream.inspected < options_.chunk_bytes) return false;
  // Acknowledged data may be missing here.
  const StreamBuffer::Run run = stream.buffer.run_from(stream.inspected);
  return !run.bytes.empty() && run.offset < received;
}

void TcpTracker::settle(TcpSession& session, Direction direction, bool ready, bool to_end,
                        const TcpStream::Progress& before) noexcept {
  TcpStream& stream = session.streams_[static_cast<std::size_t>(direction)];
  if (ready) {
    if (stream.progress() == before) session.inspect(direction, to_end, [](const StreamChunk&) noexcept {});
    stream.record_whole = false;
  }
  if (session.encrypted()) stream.inspected = std::max(stream.inspected, stream.acked());
  if (stream.buffer.empty()) {
    stream.buffer.drop_before(stream_memory_, std::min(stream.inspected, stream.acked()));
  } else {
    // Unacknowledged data may be retransmitted with different content. Inline, a hole far before the inspected offset
    // may still be filled.
    const std::uint64_t wanted =
        session.inline_ ? std::max(session.seam_bytes_, session.chunk_bytes_) : session.seam_bytes_;
    std::uint64_t from = std::min(stream.inspected, stream.acked());
    // Late data that one inspection had no room for.
    if (stream.latest_end > stream.latest_begin) from = std::min(from, stream.latest_begin);
    const std::uint64_t kept_from = from - std::min(from, wanted);
    stream.buffer.drop_before(stream_memory_, kept_from);
    if (stream.contested != nullptr) {
      stream.contested->forget_before(stream_memory_, kept_from);
      if (stream.contested->empty()) {
        ContestedBytes::free(stream_memory_, stream.contested);
        stream.contested = nullptr;
      }
    }
  }
  // Sequence numbers are only unambiguous within 2^31 of the base, so the base moves along.
  const std::int64_t ahead = sequence_distance(stream.last_ack, stream.base);
  if (ahead > (1 << 20)) {
    stream.base_offset += static_cast<std::uint64_t>(ahead);
    stream.base = stream.last_ack;
  }
}

}  // namespace penstock::stack
