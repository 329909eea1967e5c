// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Reassembles IP datagrams as the destination host would. A policy decides what happens where fragments overlap. Older
// hosts keep some of the bytes (Shankar & Paxson 2003; Novak & Sturges 2007). Linux since 4.20 discards the datagram
// (RFC 5722), except that it ignores a fragment that lies entirely within a run of others.
//
// Only the host knows which fragments reached it. With TrackerOptions::every_version, every datagram that can be built
// by laying fragments end to end is returned, also from fragments that arrive with different content after the first
// datagram was complete. If checksums are verified, only those with a correct transport checksum are returned.

#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "stack/decoded_packet.h"
#include "stack/tracker_options.h"

namespace penstock::stack {

/// A fragment as the decoder found it. It borrows its bytes.
struct IpFragment {
  std::uint32_t id = 0;
  std::uint32_t offset = 0;  // bytes, a multiple of 8
  bool more = false;
  std::uint8_t next_header = 0;    // IPv6: Next Header of the fragment header, and where to write it in `header`
  std::size_t next_header_at = 0;  // when the fragment header is removed
  Bytes header;                    // IPv4: with options; IPv6: everything before the fragment header
  Bytes data;
};

class IpReassembly {
 public:
  /// Size of the largest datagram with its header, in bytes.
  static constexpr std::size_t kMostBytes = 40 + 0xffff;
  /// Limit on the datagrams that one fragment can complete.
  static constexpr unsigned kMostDatagrams = 72;

  /// Takes policy, memory and timeout from the options. Counts its part of `counters`, which outlives it.
  IpReassembly(const TrackerOptions& options, TrackerCounters& counters);
  ~IpReassembly();
  IpReassembly(const IpReassembly&) = delete;
  IpReassembly& operator=(const IpReassembly&) = delete;

  /// Stores a copy of the fragment in `packet`. Sets events, and whether it is refused, in `packet`.
  void add(const IpFragment& fragment, DecodedPacket& packet) noexcept;
  /// Writes the next datagram that the last fragment completed to `room`, of kMostBytes, and returns it. Empty if there
  /// is none, or if `room` is empty because it could not be allocated.
  Bytes next(DecodedPacket& packet, std::span<std::uint8_t> room) noexcept;

  /// Call when a datagram that this fragment completed was dropped. The destination host still holds its other
  /// fragments, so all further fragments of the datagram are refused until the timeout: a retransmission would complete
  /// it.
  void refuse(std::uint32_t id, const DecodedPacket& packet) noexcept;

  /// Discards datagrams that have timed out by `now_ns`, in packet time.
  void expire(std::uint64_t now_ns) noexcept;

  /// Number of incomplete datagrams.
  [[nodiscard]] std::size_t datagrams() const noexcept;
  /// Memory use in bytes. It is allocated at start and never grows.
  [[nodiscard]] std::size_t memory_bytes() const noexcept;

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace penstock::stack
