// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Packets that exceed the link's MTU once they are protected: fragments them after ESP processing (RFC 4303 §3.3.4), or
// refuses them and notifies the sender (RFC 4301 §8.2). Runs on the host, also for packets that a GPU protected.

#pragma once

#include <cstdint>

#include "function/emitter.h"
#include "nf/ipsec/sa/sa_layout.h"
#include "packet/packet.h"

namespace penstock::ipsec {

/// Fragments a packet that `exceeds_mtu` has let through. Its frame becomes the first fragment; the others are emitted
/// after it. Requires a parsed layout. Returns false if there is no room for all fragments; the packet may have been
/// modified then and must be dropped.
[[nodiscard]] bool cut_into_fragments(PacketView packet, std::uint32_t mtu, function::Emitter& emitter) noexcept;

/// Tells the sender of an original packet the largest size that fits once `sa` protects it: "fragmentation needed" (RFC
/// 1191) or "packet too big" (RFC 4443 §3.2), sent out of the arrival port to the source link address. The source
/// address is the SA's local end point or, if that is of the other family, the packet's destination. Sends nothing if
/// the packet must not be answered (RFC 1122 §3.2.2, RFC 4443 §2.4 e) or if the link has no addresses to swap.
void answer_too_big(PacketView packet, const SaView& sa, std::uint32_t mtu, function::Emitter& emitter) noexcept;

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
  unsigned left_ = 0;
};

}  // namespace penstock::ipsec
