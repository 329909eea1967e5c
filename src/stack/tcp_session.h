// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// A TCP connection as a watcher between its hosts follows it: states, windows, and the streams of both directions.

#pragma once

#include <array>
#include <cstdint>
#include <type_traits>

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
  bool has_timestamp : 1 = false, zero_timestamp : 1 = false;
  bool reset_by_other : 1 = false;  // the other host sent a valid RST
  bool kept_alive : 1 = false;      // its last packet was a keep-alive
  bool depth_reached : 1 = false;   // and no more is taken
  bool fin_sent : 1 = false;
  bool record_whole : 1 = false;  // of TLS or SSH: it is inspected at once, however short

  std::uint32_t base = 0;                          // the sequence number of `base_offset`
  std::uint64_t base_offset = 0;                   // in the stream
  std::uint64_t inspected = 0;                     // all before it was, or will never be
  std::uint64_t watched = 0;                       // how far the session's EncryptionWatch has read
  std::uint64_t gap_checked = 0;                   // holes before it have been told
  std::uint64_t latest_begin = 0, latest_end = 0;  // of the last segment that was kept
  StreamBuffer buffer;

  /// Urgent bytes are no part of the stream (RFC 6093 lets them be; Suricata's `oob`): where the last few lay.
  static constexpr unsigned kUrgentKept = 4;
  std::array<std::uint32_t, kUrgentKept> urgent{};  // the newest first
  std::uint32_t urgent_count = 0;

  [[nodiscard]] std::int64_t offset_of(std::uint32_t sequence) const noexcept {
    std::int64_t offset = static_cast<std::int64_t>(base_offset) + sequence_distance(sequence, base);
    if (urgent_count != 0) offset -= urgent_before(sequence);
    return offset;
  }
  [[nodiscard]] std::uint64_t acked() const noexcept {
    const std::int64_t offset = offset_of(last_ack);
    return offset < 0 ? 0 : static_cast<std::uint64_t>(offset);
  }
  [[nodiscard]] std::uint32_t urgent_before(std::uint32_t sequence) const noexcept;
};

/// Of handshakes that are tried more than once: what the further SYNs or SYN/ACKs said.
struct QueuedSyns;

class TcpSession {
 public:
  /// That are offered at once: holes part a stream into as many chunks as its sender likes.
  static constexpr unsigned kMostChunks = 1024;

  /// What waits to be inspected of a direction, in the order of the stream; a gap parts chunks. They begin where the
  /// last inspection ended (with up to TrackerOptions::seam_bytes ahead that were in it), and end at the last
  /// acknowledged byte; `to_end`: at the last byte there is. Inline: the bytes that are new with the packet, and of
  /// their run chunk_bytes or seam_bytes on either side, whichever is more. Then they are said inspected: a second call
  /// gives nothing; or, where there are more than kMostChunks, those behind them. `use`: void(const StreamChunk&).
  template <typename Use>
  void inspect(Direction direction, bool to_end, Use&& use) {
    using Callable = std::remove_reference_t<Use>;
    inspect_to(direction, to_end, const_cast<void*>(static_cast<const void*>(&use)),
               [](void* callable, const StreamChunk& chunk) { (*static_cast<Callable*>(callable))(chunk); });
  }

  /// How far the direction's sequence numbers have gone since its SYN's, for stream_size: the SYN counts as one.
  [[nodiscard]] std::uint32_t stream_bytes(Direction direction) const noexcept {
    return stream(direction).next - stream(direction).isn;
  }
  [[nodiscard]] bool established() const noexcept { return state_ >= TcpState::established; }
  [[nodiscard]] TcpState state() const noexcept { return state_; }
  /// From now on the payload is noise, and streams have nothing to be inspected.
  [[nodiscard]] bool encrypted() const noexcept { return encryption_.encrypted(); }
  [[nodiscard]] bool midstream() const noexcept { return midstream_; }
  [[nodiscard]] const TcpStream& stream(Direction direction) const noexcept {
    return streams_[static_cast<std::size_t>(direction)];
  }

 private:
  friend class TcpTracker;

  void inspect_to(Direction direction, bool to_end, void* callable, void (*use)(void*, const StreamChunk&));
  void inspect_window(TcpStream& stream, void* callable, void (*use)(void*, const StreamChunk&)) const;

  std::array<TcpStream, 2> streams_;  // by Direction: what the client sends, what the server sends
  EncryptionWatch encryption_;
  QueuedSyns* queued_ = nullptr;
  std::uint32_t chunk_bytes_ = 0, seam_bytes_ = 0;
  std::array<std::uint8_t, 2> flags_seen_{};  // by Direction: all that its packets had
  TcpState state_ = TcpState::none;
  TcpState state_before_ = TcpState::none;
  bool inline_ : 1 = false;
  bool midstream_ : 1 = false, midstream_synack_ : 1 = false, async_ : 1 = false;
  bool timestamps_ : 1 = false;  // both hosts send them
  bool scales_ : 1 = false;      // the client offered to scale windows
  bool four_way_ : 1 = false;    // SYN, SYN, SYN/ACK, ACK
  bool fast_open_ : 1 = false;   // RFC 7413
  bool evasion_ : 1 = false;     // the handshake's ACK had a wrong number
  bool confirmed_ : 1 = false;   // the server has answered behind the handshake
};

}  // namespace penstock::stack
