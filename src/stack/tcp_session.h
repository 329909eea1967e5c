// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// A TCP connection, tracked from a point between its hosts: state, windows, and the streams of both directions.

#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>

#include "base/prefetch.h"
#include "stack/contested_bytes.h"
#include "stack/encryption_watch.h"
#include "stack/flow.h"
#include "stack/sequence.h"
#include "stack/stream_buffer.h"

namespace penstock::stack {

/// Contiguous bytes of one direction of a stream.
struct StreamChunk {
  std::uint64_t offset = 0;  // of the first byte; 0 is the byte after the SYN
  Bytes bytes;               // valid until PacketSink::packet returns
  // How many of the bytes are not new: a match that lies entirely within them belongs to another chunk. The leading
  // ones were inspected before. Trailing ones follow data that filled a hole. Off the path, some of these may not have
  // been inspected yet; they are new in a later chunk.
  std::uint32_t seen = 0, seen_behind = 0;  // leading, trailing

  /// What the receiver may have read in place of some bytes of the stream. Ignore versions that are not `possible` or
  /// lie outside the chunk. Valid as long as `bytes`.
  std::span<const ContestedBytes::Version> versions{};
  std::span<const ContestedBytes::UrgentMark> urgent{};
  /// The bytes are also offered in a chunk of their own. This chunk is for inspecting their other versions.
  bool contested = false;
};

/// Ordered by the age of the session, so that states can be compared with < and > (as Suricata does).
enum class TcpState : std::uint8_t {
  none,
  syn_sent,
  syn_received,
  established,
  fin_wait1,
  fin_wait2,
  time_wait,
  last_ack,
  close_wait,
  closing,
  closed,
};

/// The data that one host sends. Sequence numbers refer to that data, and the window is the one that the other host
/// advertises for it, in bytes (scaled).
struct TcpStream {
  std::uint32_t isn = 0;
  std::uint32_t next = 0;      // one past the highest byte that was accepted
  std::uint32_t last_ack = 0;  // by the other host
  std::uint32_t next_win = 0;  // highest right edge of any advertised window
  std::uint32_t window = 0;
  std::uint32_t timestamp = 0;    // last accepted TSval (RFC 7323 §5.3, TS.Recent)
  std::uint32_t timestamp_s = 0;  // packet time at which it was accepted
  std::uint8_t scale = 0;         // of `window`
  std::uint8_t beginnings = 0;  // how often the stream was started; data accepted before the latest start is not in it
  bool has_timestamp : 1 = false, zero_timestamp : 1 = false;
  bool reset_by_other : 1 = false;  // the other host sent a valid RST
  bool kept_alive : 1 = false;      // the host's last packet was a keep-alive
  bool depth_reached : 1 = false;   // TrackerOptions::stream_depth; no more data is accepted
  bool fin_sent : 1 = false;
  bool record_whole : 1 = false;  // a TLS or SSH record is complete: inspect it at once, however short

  std::uint32_t base = 0;         // the sequence number of `base_offset`
  std::uint64_t base_offset = 0;  // in the stream
  std::uint64_t inspected = 0;    // data before it was inspected, or never will be
  std::uint64_t watched = 0;      // how far the session's EncryptionWatch has read
  std::uint64_t gap_checked = 0;  // holes before it have been reported
  // A range still to be inspected. Inline: new data of the last stored segment. Passive: late data that filled holes
  // before `inspected`, from the first late byte to the last. There may be inspected data and holes in between.
  std::uint64_t latest_begin = 0, latest_end = 0;
  StreamBuffer buffer;

  ContestedBytes* contested = nullptr;  // from stream memory; null while nothing is contested

  [[nodiscard]] std::int64_t offset_of(std::uint32_t sequence) const noexcept {
    return static_cast<std::int64_t>(base_offset) + sequence_distance(sequence, base);
  }
  [[nodiscard]] std::uint64_t acked() const noexcept {
    const std::int64_t offset = offset_of(last_ack);
    return offset < 0 ? 0 : static_cast<std::uint64_t>(offset);
  }
  /// One past the last byte that the receiver has in order, as far as the tracker knows (RCV.NXT of RFC 9293).
  [[nodiscard]] std::uint64_t in_order() const noexcept {
    const std::uint64_t acknowledged = acked();
    const StreamBuffer::Run run = buffer.run_from(acknowledged);
    return run.bytes.empty() || run.offset != acknowledged ? acknowledged : run.end();
  }
  /// Adds a range of late data, if it is not empty, to what is still to be inspected.
  void note_late(const StreamBuffer::Range& late) noexcept {
    if (late.begin >= late.end) return;
    const bool waits = latest_end > latest_begin;
    latest_begin = waits ? std::min(latest_begin, late.begin) : late.begin;
    latest_end = waits ? std::max(latest_end, late.end) : late.end;
  }
  /// How far the inspection has come, in order and in what is still to be inspected before that.
  struct Progress {
    std::uint64_t inspected = 0, latest_begin = 0;
    friend bool operator==(const Progress&, const Progress&) = default;
  };
  [[nodiscard]] Progress progress() const noexcept { return {inspected, latest_begin}; }
  /// Whether there are contested bytes before `limit` that have not been offered yet.
  [[nodiscard]] bool contested_waits(std::uint64_t limit) const noexcept {
    return contested != nullptr && contested->waits(limit);
  }
  /// Starts the stream at the byte after a SYN with this sequence number. The stream must be empty.
  void begin_at(std::uint32_t syn) noexcept {
    isn = syn;
    base = next = last_ack = syn + 1;
    base_offset = 0;
    ++beginnings;
  }
  /// The receiver acknowledged data. Capped at what was sent: hosts discard a segment that acknowledges more.
  void acknowledge(std::uint32_t ack) noexcept {
    const std::uint32_t end = next + (fin_sent ? 1U : 0U);
    advance(last_ack, after(ack, end) ? end : ack);
  }
  void take_timestamp(std::uint32_t value, std::uint32_t time_s) noexcept {
    timestamp = value;
    timestamp_s = time_s;
    zero_timestamp = value == 0;
    has_timestamp = true;
  }
  void grant(std::uint32_t bytes) noexcept {
    window = bytes;
    advance(next_win, last_ack + bytes);
  }
};

/// SYNs and SYN/ACKs other than the session's own: see tcp_handshake.h.
struct Handshakes;

class TcpSession {
 public:
  /// Limit on chunks per `inspect` call. A sender that leaves holes could otherwise split a stream into any number.
  static constexpr unsigned kMostChunks = 1024;
  /// Largest contested chunk, in bytes. Longer ranges are split into chunks that overlap by twice seam_bytes.
  static constexpr std::uint32_t kMostContested = 8192;

  /// Calls `use`, a void(const StreamChunk&), with the data of a direction that is to be inspected, in stream order. A
  /// gap separates chunks. Passive: from the end of the last inspection, with up to TrackerOptions::seam_bytes of
  /// context before it, to the last acknowledged byte, or with `to_end` to the last byte received. Inline: the packet's
  /// new bytes, with up to chunk_bytes or seam_bytes of their run on either side, whichever is more. Contested chunks
  /// follow the others: each contested byte with seam_bytes on either side. All of it is then marked as inspected, so a
  /// second call yields nothing, or the next chunks if there were more than kMostChunks.
  template <typename Use>
  void inspect(Direction direction, bool to_end, Use&& use) {
    using Callable = std::remove_reference_t<Use>;
    inspect_to(direction, to_end, const_cast<void*>(static_cast<const void*>(&use)),
               [](void* callable, const StreamChunk& chunk) { (*static_cast<Callable*>(callable))(chunk); });
  }

  /// The inspection state of a direction. With mark() and rewind(), several functions can inspect the same data in
  /// turn.
  struct InspectionMark {
    std::uint64_t inspected = 0, latest_begin = 0;
    ContestedBytes::Offered contested{};
  };
  [[nodiscard]] InspectionMark mark(Direction direction) const noexcept;
  void rewind(Direction direction, const InspectionMark& mark) noexcept;
  /// Sets the seam_bytes that `inspect` uses from now on, since each function has its own. At most
  /// TrackerOptions::seam_bytes.
  void set_seam(std::uint32_t bytes) noexcept { seam_bytes_ = bytes; }

  /// Distance from the direction's ISN to its next sequence number, for the stream_size keyword. The SYN counts as one.
  [[nodiscard]] std::uint32_t stream_bytes(Direction direction) const noexcept {
    return stream(direction).next - stream(direction).isn;
  }
  [[nodiscard]] bool established() const noexcept { return state_ >= TcpState::established; }
  [[nodiscard]] TcpState state() const noexcept { return state_; }
  /// The payload is encrypted from now on, so the streams have nothing left to inspect.
  [[nodiscard]] bool encrypted() const noexcept { return encryption_.encrypted(); }
  [[nodiscard]] bool midstream() const noexcept { return midstream_; }
  /// Each host has acknowledged the other's FIN, so neither continues.
  [[nodiscard]] bool end_confirmed() const noexcept {
    return std::all_of(streams_.begin(), streams_.end(),
                       [](const TcpStream& one) { return one.fin_sent && one.last_ack == one.next + 1; });
  }
  [[nodiscard]] const TcpStream& stream(Direction direction) const noexcept {
    return streams_[static_cast<std::size_t>(direction)];
  }
  /// Prefetches the members that every packet needs.
  void prefetch() const noexcept {
    const auto* const begin = reinterpret_cast<const std::byte*>(this);
    penstock::prefetch(begin, static_cast<std::size_t>(reinterpret_cast<const std::byte*>(&encryption_) - begin) + 1);
  }

 private:
  friend class TcpTracker;

  using Use = void (*)(void*, const StreamChunk&);
  void inspect_to(Direction direction, bool to_end, void* callable, Use use);
  [[nodiscard]] bool has_news(const TcpStream& stream) const noexcept;
  void inspect_window(TcpStream& stream, void* callable, Use use) const;
  void inspect_contested(TcpStream& stream, std::uint64_t from, std::uint64_t limit, void* callable, Use use) const;
  /// The stream offset up to which data may be inspected: what the receiver is known to have, or everything once the
  /// session is over.
  [[nodiscard]] std::uint64_t received(const TcpStream& stream) const noexcept;

  // Members that every packet needs come first and lie together, up to the start of encryption_: see prefetch().
  std::array<TcpStream, 2> streams_;  // by Direction: sent by the client, sent by the server
  Handshakes* handshakes_ = nullptr;
  std::uint32_t chunk_bytes_ = 0, seam_bytes_ = 0;
  std::uint32_t syn_timestamp_ = 0;           // TSval of the client's first SYN; the stream has that of its last
  std::array<std::uint8_t, 2> flags_seen_{};  // by Direction: union of all packets' flags
  TcpState state_ = TcpState::none;
  TcpState state_before_ = TcpState::none;
  bool inline_ : 1 = false;
  bool midstream_ : 1 = false, midstream_synack_ : 1 = false, async_ : 1 = false;
  bool timestamps_ : 1 = false;       // both hosts use timestamps
  bool scales_ : 1 = false;           // the client offered window scaling
  bool four_way_ : 1 = false;         // SYN, SYN, SYN/ACK, ACK
  bool fast_open_ : 1 = false;        // RFC 7413
  bool evasion_ : 1 = false;          // the handshake's final ACK had a wrong number
  bool confirmed_ : 1 = false;        // the server has responded after the handshake
  bool begin_confirmed_ : 1 = false;  // the server acknowledged the SYN that the session recorded
  EncryptionWatch encryption_;
};

}  // namespace penstock::stack
