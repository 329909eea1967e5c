// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Answers to the source of a packet that does not go on: ICMP errors and TCP resets. They leave by the port where the
// packet arrived, to the link address that it came from.

#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/ip_address.h"
#include "function/emitter.h"
#include "packet/packet.h"

namespace penstock::function {

/// Whether an error may be sent about this packet, which has a parsed layout: not about errors, later fragments, or
/// packets that were not from one host to one host (RFC 1122 §3.2.2, RFC 4443 §2.4 e), nor where the link has no
/// addresses to swap. As Linux, it answers ICMP that is no error.
[[nodiscard]] bool may_be_answered(PacketView packet) noexcept;

/// RFC 792, or RFC 4443 for an IPv6 packet. `rest`: the four bytes after the checksum.
struct IcmpError {
  std::uint8_t type = 0;
  std::uint8_t code = 0;
  std::uint32_t rest = 0;
};

/// Sends an ICMP error that quotes the packet, which may be answered. `from`: its source address, if that is not the
/// packet's destination; an IPv4 address is in the low bits. `cause`: the packet in its batch, if `packet` shows it as
/// it arrived. Sends nothing if there is no room in this batch.
void answer_with_error(PacketView packet, const IcmpError& error, std::optional<Ipv6Address> from, PacketView cause,
                       Emitter& emitter) noexcept;

/// Sends a reset in answer to a TCP segment that may be answered (RFC 9293 §3.5.2), unless it is one itself. `cause` as
/// above. Sends nothing if there is no room in this batch.
void answer_with_reset(PacketView packet, PacketView cause, Emitter& emitter) noexcept;

/// Limits one worker's ICMP errors per second, so that they cannot be used for flooding (RFC 4443 §2.4 f).
class AnswerLimit {
 public:
  [[nodiscard]] bool take(std::int64_t second) noexcept;

 private:
  static constexpr unsigned kMostPerSecond = 1000;
  std::int64_t second_ = 0;
  unsigned left_ = kMostPerSecond;
};

/// Also those to each receiver, as Linux's icmp_ratelimit: a burst, and then one a second to each host, or each /64 of
/// IPv6. If there are more receivers at a time than room, some share theirs.
class ReceiverLimit {
 public:
  ReceiverLimit();

  /// For an answer to the sender of this packet.
  [[nodiscard]] bool take(PacketView packet) noexcept;

 private:
  static constexpr unsigned kBurst = 6;
  static constexpr std::size_t kSets = 1024;

  struct Receiver {
    std::uint64_t address = 0;
    std::uint64_t paid_until_ns = 0;  // each error costs a second
  };
  using Set = std::array<Receiver, 4>;

  [[nodiscard]] Receiver& receiver_of(PacketView packet, std::uint64_t now_ns) noexcept;

  AnswerLimit all_;
  std::uint64_t seed_;
  std::vector<Set> receivers_;  // by the address's hash
};

}  // namespace penstock::function
