// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Tells hosts why their packets are not forwarded, by ICMP errors (RFC 1812 §5.2.7, RFC 4443 §3). One for each worker.

#pragma once

#include <optional>
#include <vector>

#include "function/answer.h"
#include "function/emitter.h"
#include "function/port_addresses.h"
#include "packet/packet.h"

namespace penstock::router {

class ErrorSender {
 public:
  /// Borrows the router's own addresses, by PortIndex. Errors come from that of the port where the packet came.
  explicit ErrorSender(const std::vector<function::PortAddresses>& addresses) : addresses_(addresses) {
    if (!addresses.empty()) limit_.emplace();
  }
  /// Before this, it sends nothing. Borrows the emitter.
  void set_emitter(function::Emitter& emitter) noexcept { emitter_ = &emitter; }

  /// For a packet with a verdict about which senders are told (is_told). Not all packets may be answered
  /// (function/answer.h).
  void tell(PacketView packet) noexcept;

 private:
  const std::vector<function::PortAddresses>& addresses_;
  function::Emitter* emitter_ = nullptr;
  std::optional<function::ReceiverLimit> limit_;  // empty: nobody is told
};

}  // namespace penstock::router
