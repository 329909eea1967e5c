// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Fragments are not reassembled: those after the first follow it to its connection. This table remembers the first
// fragments of the last datagrams, in sets of four. A new one takes the place of the oldest of its set.

#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "base/huge_page_allocator.h"
#include "conntrack/tracked.h"
#include "packet/packet.h"

namespace penstock::conntrack {

/// Where a fragment belongs.
struct Fragment {
  Ipv6Address source, destination;
  std::uint32_t id = 0;
  std::uint8_t protocol = 0;  // IPv6: 0, since only the first fragment is certain to tell
  std::uint8_t ip_version = 0;
  std::uint32_t from = 0, to = 0;  // its bytes of the datagram

  [[nodiscard]] bool is_of_same_datagram(const Fragment& other) const noexcept {
    return id == other.id && protocol == other.protocol && ip_version == other.ip_version && source == other.source &&
           destination == other.destination;
  }
};

/// `packet` is a fragment with a valid IP header.
[[nodiscard]] Fragment read_fragment(PacketView packet) noexcept;

struct FirstFragment {
  Fragment fragment;
  std::uint32_t connection = 0, generation = 0;  // in the store; Connection::kNone: it is untracked
  std::uint32_t tcp_offset = 0;                  // sequence number of the datagram's byte 0, and flags
  bool moves_window = false;                     // TCP, of a segment that was believed
  State state = State::invalid;
  Direction direction = Direction::original;
  bool expected = false;                // as Tracked::expected
  std::optional<std::uint8_t> owner{};  // the other worker to which it went: nothing else is known about it
  std::uint64_t expires_ns = 0;
};

class Fragments {
 public:
  /// Room for at least `most` datagrams.
  Fragments(std::uint32_t most, std::uint64_t seed);

  void remember(const FirstFragment& first, std::uint64_t now_ns) noexcept;
  /// The first fragment of the same datagram, if `fragment` follows it. Not if both have the same bytes: receivers
  /// discard such datagrams (RFC 5722 §4).
  [[nodiscard]] const FirstFragment* find(const Fragment& fragment, std::uint64_t now_ns) const noexcept;

 private:
  static constexpr std::size_t kWays = 4;
  using Set = std::array<FirstFragment, kWays>;

  [[nodiscard]] Set& set_of(const Fragment& fragment) const noexcept;

  std::uint64_t seed_;
  std::uint32_t mask_;
  HugeMemory<Set> sets_;
};

}  // namespace penstock::conntrack
