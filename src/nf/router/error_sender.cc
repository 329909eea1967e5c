// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "nf/router/error_sender.h"

#include <cstdint>

#include "nf/router/forward_core.h"

namespace penstock::router {

namespace {

/// As Linux sends them.
function::IcmpError error_for(DropReason reason, bool ipv4) {
  constexpr std::uint8_t kUnreachable4 = 3, kNetwork4 = 0, kHost4 = 1, kProhibited4 = 13, kTimeExceeded4 = 11;
  constexpr std::uint8_t kUnreachable6 = 1, kNoRoute6 = 0, kProhibited6 = 1, kAddress6 = 3, kTimeExceeded6 = 3;
  switch (reason) {
    case DropReason::ttl_exceeded: return {ipv4 ? kTimeExceeded4 : kTimeExceeded6, 0};
    case DropReason::prohibit:
      return ipv4 ? function::IcmpError{kUnreachable4, kProhibited4} : function::IcmpError{kUnreachable6, kProhibited6};
    case DropReason::unreachable:
      return ipv4 ? function::IcmpError{kUnreachable4, kHost4} : function::IcmpError{kUnreachable6, kAddress6};
    default:
      return ipv4 ? function::IcmpError{kUnreachable4, kNetwork4} : function::IcmpError{kUnreachable6, kNoRoute6};
  }
}

}  // namespace

void ErrorSender::tell(PacketView packet) noexcept {
  const PortIndex port = packet.packet->in_port;
  if (emitter_ == nullptr || port >= addresses_.size()) return;
  const NetworkLayer family = packet.layout().network;
  const auto from = addresses_[port].of(family);
  if (!from) return;
  const auto arrived = emitter_->as_it_arrived(packet);
  if (!arrived || !function::may_be_answered(*arrived)) return;
  if (!limit_->take(*arrived)) return;
  const auto reason = static_cast<DropReason>(packet.packet->verdict.value);
  const function::IcmpError error = error_for(reason, family == NetworkLayer::ipv4);
  function::answer_with_error(*arrived, error, from, packet, *emitter_);
}

}  // namespace penstock::router
