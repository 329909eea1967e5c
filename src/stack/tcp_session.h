// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// A TCP connection as a watcher between its hosts follows it: states, windows, and the streams of both directions.

#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>

#include "stack/contested_bytes.h"
#include "stack/encryption_watch.h"
#include "stack/flow.h"
#include "stack/sequence.h"
#include "stack/stream_buffer.h"

namespace penstock::stack {

/// Contiguous bytes of one direction of a stream.
struct StreamChunk {
  std::uint64_t offset = 0;  // of the first byte, from the byte behind the SYN
  Bytes bytes;               // until PacketSink::packet returns
  // Of the bytes, how many an earlier inspection had: what lies in them alone is no news. Inline, a segment that fills
  // a hole has some behind it too.
  std::uint32_t seen = 0, seen_behind = 0;  // leading, trailing

  /// What the receiver may have read in place of some bytes of the stream. Those that are not `possible`, or lie
  /// outside of the chunk, say nothing of it. They stay as long as the bytes.
  std::span<const ContestedBytes::Version> versions{};
  std::span<const ContestedBytes::UrgentMark> urgent{};
  /// The bytes are or were offered in a chunk of their own; this one is for the other ways to read them.
  bool contested = false;
};

/// In the order of their numbers a session gets older (Suricata compares them so).
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

/// What one host sends. Sequence numbers and the window are those of its own data; the window is what the other host
/// grants, scaled.
struct TcpStream {
  std::uint32_t isn = 0;
  std::uint32_t next = 0;      // behind the highest byte that was accepted
  std::uint32_t last_ack = 0;  // by the other host
  std::uint32_t next_win = 0;  // the highest right edge of the window that was granted
  std::uint32_t window = 0;
  std::uint32_t timestamp = 0;    // the last TSval that was accepted (RFC 7323 §5.3, TS.Recent)
  std::uint32_t timestamp_s = 0;  // when, in the packets' time
  std::uint8_t scale = 0;         // of `window`
  std::uint8_t beginnings = 0;    // of the stream: what was taken for its bytes before the latest is not in it
  bool has_timestamp : 1 = false, zero_timestamp : 1 = false;
  bool reset_by_other : 1 = false;  // the other host sent a valid RST
  bool kept_alive : 1 = false;      // its last packet was a keep-alive
  bool depth_reached : 1 = false;   // and no more is taken
  bool fin_sent : 1 = false;
  bool record_whole : 1 = false;  // of TLS or SSH: it is inspected at once, however short

  std::uint32_t base = 0;         // the sequence number of `base_offset`
  std::uint64_t base_offset = 0;  // in the stream
  std::uint64_t inspected = 0;    // all before it was, or will never be
  std::uint64_t watched = 0;      // how far the session's EncryptionWatch has read
  std::uint64_t gap_checked = 0;  // holes before it have been told
  // Inline, of the last segment that was kept; else of what has filled a hole behind the inspection. To be inspected.
  std::uint64_t latest_begin = 0, latest_end = 0;
  StreamBuffer buffer;

  ContestedBytes* contested = nullptr;  // of the stream memory; null while nothing is contested

  [[nodiscard]] std::int64_t offset_of(std::uint32_t sequence) const noexcept {
    return static_cast<std::int64_t>(base_offset) + sequence_distance(sequence, base);
  }
  [[nodiscard]] std::uint64_t acked() const noexcept {
    const std::int64_t offset = offset_of(last_ack);
    return offset < 0 ? 0 : static_cast<std::uint64_t>(offset);
  }
  /// Behind the last byte that the receiver has in order, as far as this watcher knows (RCV.NXT of RFC 9293).
  [[nodiscard]] std::uint64_t in_order() const noexcept {
    const std::uint64_t acknowledged = acked();
    const StreamBuffer::Run run = buffer.run_from(acknowledged);
    return run.bytes.empty() || run.offset != acknowledged ? acknowledged : run.end();
  }
  /// To what is still to be inspected of what came late.
  void note_late(std::uint64_t begin, std::uint64_t end) noexcept {
    const bool waits = latest_end > latest_begin;
    latest_begin = waits ? std::min(latest_begin, begin) : begin;
    latest_end = waits ? std::max(latest_end, end) : end;
  }
  /// Whether contested bytes before `limit` have never been offered.
  [[nodiscard]] bool contested_waits(std::uint64_t limit) const noexcept {
    return contested != nullptr && contested->waits(limit);
  }
  /// The stream is empty, and begins behind the SYN of this number.
  void begin_at(std::uint32_t syn) noexcept {
    isn = syn;
    base = next = last_ack = syn + 1;
    base_offset = 0;
    ++beginnings;
  }
  /// By the receiver. Nobody has what its sender has not sent: hosts discard a segment that acknowledges more.
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

/// SYNs and SYN/ACKs other than those that the session follows: see tcp_handshake.h.
struct Handshakes;

class TcpSession {
 public:
  /// That are offered at once: holes part a stream into as many chunks as its sender likes.
  static constexpr unsigned kMostChunks = 1024;
  /// The most bytes of a contested chunk. What is longer is offered in several that overlap by twice seam_bytes.
  static constexpr std::uint32_t kMostContested = 8192;

  /// What waits to be inspected of a direction, in the order of the stream; a gap parts chunks. They begin where the
  /// last inspection ended (with up to TrackerOptions::seam_bytes ahead that were in it), and end at the last
  /// acknowledged byte; `to_end`: at the last byte there is. Inline: the bytes that are new with the packet, and of
  /// their run chunk_bytes or seam_bytes on either side, whichever is more. Then they are said inspected: a second call
  /// gives nothing; or, where there are more than kMostChunks, those behind them. Contested chunks follow the others:
  /// around each contested byte, seam_bytes on either side. `use`: void(const StreamChunk&).
  template <typename Use>
  void inspect(Direction direction, bool to_end, Use&& use) {
    using Callable = std::remove_reference_t<Use>;
    inspect_to(direction, to_end, const_cast<void*>(static_cast<const void*>(&use)),
               [](void* callable, const StreamChunk& chunk) { (*static_cast<Callable*>(callable))(chunk); });
  }

  /// Where `inspect` stands in a direction, so that it gives the same again: to the next of several functions.
  struct InspectionMark {
    std::uint64_t inspected = 0, latest_begin = 0;
    ContestedBytes::Offered contested{};
  };
  [[nodiscard]] InspectionMark mark(Direction direction) const noexcept;
  void rewind(Direction direction, const InspectionMark& mark) noexcept;
  /// In place of TrackerOptions::seam_bytes, which are no fewer, for `inspect` from now on: each function has its own.
  void set_seam(std::uint32_t bytes) noexcept { seam_bytes_ = bytes; }

  /// How far the direction's sequence numbers have gone since its SYN's, for stream_size: the SYN counts as one.
  [[nodiscard]] std::uint32_t stream_bytes(Direction direction) const noexcept {
    return stream(direction).next - stream(direction).isn;
  }
  [[nodiscard]] bool established() const noexcept { return state_ >= TcpState::established; }
  [[nodiscard]] TcpState state() const noexcept { return state_; }
  /// From now on the payload is noise, and streams have nothing to be inspected.
  [[nodiscard]] bool encrypted() const noexcept { return encryption_.encrypted(); }
  [[nodiscard]] bool midstream() const noexcept { return midstream_; }
  /// Both hosts have acknowledged the other's FIN: neither goes on.
  [[nodiscard]] bool end_confirmed() const noexcept {
    return std::all_of(streams_.begin(), streams_.end(),
                       [](const TcpStream& one) { return one.fin_sent && one.last_ack == one.next + 1; });
  }
  [[nodiscard]] const TcpStream& stream(Direction direction) const noexcept {
    return streams_[static_cast<std::size_t>(direction)];
  }
  /// Fetches into the cache what each packet needs of it.
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
  /// How far the direction is inspected: what its receiver has for sure, or all of it once the session is over.
  [[nodiscard]] std::uint64_t received(const TcpStream& stream) const noexcept;

  // What each packet needs lies together, the streams first, and ends where the encryption's watch has begun.
  std::array<TcpStream, 2> streams_;  // by Direction: what the client sends, what the server sends
  Handshakes* handshakes_ = nullptr;
  std::uint32_t chunk_bytes_ = 0, seam_bytes_ = 0;
  std::uint32_t syn_timestamp_ = 0;           // of the client's first SYN; that of its last is its stream's
  std::array<std::uint8_t, 2> flags_seen_{};  // by Direction: all that its packets had
  TcpState state_ = TcpState::none;
  TcpState state_before_ = TcpState::none;
  bool inline_ : 1 = false;
  bool midstream_ : 1 = false, midstream_synack_ : 1 = false, async_ : 1 = false;
  bool timestamps_ : 1 = false;       // both hosts send them
  bool scales_ : 1 = false;           // the client offered to scale windows
  bool four_way_ : 1 = false;         // SYN, SYN, SYN/ACK, ACK
  bool fast_open_ : 1 = false;        // RFC 7413
  bool evasion_ : 1 = false;          // the handshake's ACK had a wrong number
  bool confirmed_ : 1 = false;        // the server has answered behind the handshake
  bool begin_confirmed_ : 1 = false;  // and acknowledged the client's SYN as the session has it
  EncryptionWatch encryption_;
};

}  // namespace penstock::stack
