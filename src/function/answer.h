// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Answers to the source of a packet that does not go on: ICMP errors and TCP resets. They leave by the port where the
// packet arrived, to the link address that it came from.

#pragma once

#include <cstdint>
#include <optional>

#include "base/ip_address.h"
#include "function/emitter.h"
#include "packet/packet.h"

namespace penstock::function {

/// Whether an error may be sent about this packet, which has a parsed layout: not about errors, later fragments, or
/// packets that were not from one host to one host (RFC 1122 §3.2.2, RFC 4443 §2.4 e), nor where the link has no
/// addresses to swap.
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
  [[nodiscard]] bool take(std::int64_t second) noexcept {
    if (second != second_) {
      second_ = second;
      left_ = kMostPerSecond;
    }
    return left_ != 0 && left_-- != 0;
  }

 private:
  static constexpr unsigned kMostPerSecond = 1000;
  std::int64_t second_ = 0;
  unsigned left_ = kMostPerSecond;
};

}  // namespace penstock::function
