// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Datagrams from their fragments, as the host that they go to puts them together: where fragments overlap, its policy
// says whose bytes it keeps (Shankar & Paxson 2003; Novak & Sturges 2007).
//
// All memory is taken at the beginning and touched as it is needed. Fragments lie in blocks of it in the order of their
// arrival, and are told apart only once a datagram is whole:
//
//   datagram ─▶ fragment ─▶ fragment ─▶ …      in order of arrival
//                  │
//                block ─▶ block ─▶ …           IP header, if it is the first of the datagram, and data
//
// Where memory is short, the datagram that has waited longest since its last fragment is given up, or what comes is
// refused (TrackerOptions::refuse_when_full).

#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "base/ip_address.h"
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

  /// Takes the policy, the memory and the timeout from the options. Counts its part of `counters`, which outlives it.
  IpReassembly(const TrackerOptions& options, TrackerCounters& counters);
  ~IpReassembly();
  IpReassembly(const IpReassembly&) = delete;
  IpReassembly& operator=(const IpReassembly&) = delete;

  /// Keeps a copy of the fragment that `packet` is. When it completes a datagram, that is written to `room`, of
  /// kMostBytes, and returned. Where there is none (an empty one), there is no memory for the fragment. Events are told
  /// in `packet`.
  Bytes add(const IpFragment& fragment, DecodedPacket& packet, std::span<std::uint8_t> room) noexcept;

  /// The datagram that this fragment completed was dropped. Its other fragments wait at the host that it goes to: until
  /// the timeout, whatever comes of it is `refused`, lest the missing one comes again.
  void refuse(std::uint32_t id, const DecodedPacket& packet) noexcept;

  /// Gives up what has waited for too long by this time (of packets).
  void expire(std::uint64_t now_ns) noexcept;

  /// What waits.
  [[nodiscard]] std::size_t datagrams() const noexcept;
  /// Taken at the beginning: never more.
  [[nodiscard]] std::size_t memory_bytes() const noexcept;

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace penstock::stack
