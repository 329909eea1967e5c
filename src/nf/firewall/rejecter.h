// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Answers packets that rules reject, as Linux's nf_reject does: with an ICMP error, or a TCP reset. One for each
// worker.

#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "classify/rule.h"
#include "function/answer.h"
#include "function/emitter.h"
#include "function/port_addresses.h"
#include "packet/packet.h"

namespace penstock::firewall {

/// Which rejected packets are answered, and how.
struct Answering {
  std::vector<bool> ports{};  // by PortIndex: those that arrive there; empty: nowhere
  /// Functions before this one may have changed them: what is answered is the packet as it arrived.
  bool as_they_arrived = false;
  std::vector<function::PortAddresses> addresses{};  // by PortIndex, of the host: ICMP errors come from there
};

class Rejecter {
 public:
  /// Borrows both.
  Rejecter(const classify::Ruleset& rules, const Answering& answering) : rules_(rules), answering_(answering) {
    if (!answering.ports.empty()) limit_.emplace();
  }
  /// Before this, it sends nothing. Borrows the emitter.
  void set_emitter(function::Emitter& emitter) noexcept { emitter_ = &emitter; }

  /// For a packet that is rejected, with a parsed layout. `counter`: of the rule or the policy that rejects it, as in
  /// RuleCounters. Not all packets may be answered (function/answer.h), and none with a wrong checksum is.
  void answer(PacketView packet, std::uint32_t counter) noexcept;
  /// Whether the counter is of a rule or a policy that rejects.
  [[nodiscard]] bool rejects(std::uint32_t counter) const noexcept;

 private:
  [[nodiscard]] std::optional<Ipv6Address> source_of(PacketView arrived, PacketView now) const noexcept;

  const classify::Ruleset& rules_;
  const Answering& answering_;
  function::Emitter* emitter_ = nullptr;
  std::optional<function::ReceiverLimit> limit_;  // empty: nothing is answered
};

}  // namespace penstock::firewall
