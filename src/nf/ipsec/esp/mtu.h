// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Packets that are longer than the link once they are protected: cut behind ESP (RFC 4303 §3.3.4), or refused with a
// word to their sender (RFC 4301 §8.2). On the host, also for what a GPU has protected.

#pragma once

#include <cstdint>

#include "function/emitter.h"
#include "nf/ipsec/sa/sa_layout.h"
#include "packet/packet.h"

namespace penstock::ipsec {

/// Cuts a packet that `exceeds_mtu` has let through: its frame becomes the first fragment, the others are emitted
/// behind it. Its layout is parsed. False where there is no room for all of them: then the packet may be changed, and
/// must be dropped.
[[nodiscard]] bool cut_into_fragments(PacketView packet, std::uint32_t mtu, function::Emitter& emitter) noexcept;

/// Tells the sender of a packet, as it came, how long one may be that `sa` is to protect: "fragmentation needed" (RFC
/// 1191) or "packet too big" (RFC 4443 §3.2), back by the port that it came by, to the link address that it came from.
/// From the SA's own end point, or, where that is of the other family, from whom the packet was for. Nothing is sent
/// where nobody may be answered (RFC 1122 §3.2.2, RFC 4443 §2.4 e), or by a link that has no addresses to turn round.
void answer_too_big(PacketView packet, const SaView& sa, std::uint32_t mtu, function::Emitter& emitter) noexcept;

/// So that answers cannot be made to flood (RFC 4443 §2.4 f): one worker's, some each second.
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
