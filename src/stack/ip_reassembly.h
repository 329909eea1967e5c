// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Datagrams from their fragments, as the host that they go to puts them together. Where fragments overlap, a policy
// says what becomes of it: older hosts keep some of the bytes (Shankar & Paxson 2003; Novak & Sturges 2007), Linux
// since 4.20 discards the datagram (RFC 5722), unless a fragment lies in a run of others: then that fragment alone.
//
// Which fragments the host has, nobody else knows: some may have died on the way. With TrackerOptions::every_version
// each datagram that fragments make which fit end to end is given, also of fragments that come again with other content
// after the first one was whole; of those whose transport checksum is right, if checksums are verified.

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
  std::uint8_t next_header = 0;    // IPv6: what the fragment header names, and where in `header` it is to be named once
  std::size_t next_header_at = 0;  // the fragment header is gone
  Bytes header;                    // IPv4: with options; IPv6: all before the fragment header
  Bytes data;
};

class IpReassembly {
 public:
  /// The largest datagram, with its header.
  static constexpr std::size_t kMostBytes = 40 + 0xffff;
  /// That one fragment completes.
  static constexpr unsigned kMostDatagrams = 72;

  /// Takes policy, memory and timeout from the options. Counts its part of `counters`, which outlives it.
  IpReassembly(const TrackerOptions& options, TrackerCounters& counters);
  ~IpReassembly();
  IpReassembly(const IpReassembly&) = delete;
  IpReassembly& operator=(const IpReassembly&) = delete;

  /// Keeps a copy of the fragment that `packet` is. Events, and whether it is refused, are told in `packet`.
  void add(const IpFragment& fragment, DecodedPacket& packet) noexcept;
  /// The next datagram that this fragment completed, written to `room`, of kMostBytes. Empty: there is none, or the
  /// room is empty, for which there was no memory.
  Bytes next(DecodedPacket& packet, std::span<std::uint8_t> room) noexcept;

  /// A datagram that this fragment completed was dropped. Its other fragments wait at the host that it goes to: until
  /// the timeout, whatever comes of it is `refused`, lest the missing one comes again.
  void refuse(std::uint32_t id, const DecodedPacket& packet) noexcept;

  /// Gives up what has waited for too long by this time (of packets).
  void expire(std::uint64_t now_ns) noexcept;

  /// That wait for fragments.
  [[nodiscard]] std::size_t datagrams() const noexcept;
  /// Taken at the beginning: never more.
  [[nodiscard]] std::size_t memory_bytes() const noexcept;

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace penstock::stack
