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
/// 1191) or "packet too big" (RFC 4443 §3.2). The source address is the SA's local end point or, if that is of the
/// other family, the packet's destination. Sends nothing if the packet may not be answered (function/answer.h).
void answer_too_big(PacketView packet, const SaView& sa, std::uint32_t mtu, function::Emitter& emitter) noexcept;

}  // namespace penstock::ipsec
