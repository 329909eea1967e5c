// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Answers packets that rules reject, as Linux's nf_reject does: with an ICMP error, or a TCP reset. One for each
// worker.

#pragma once

#include <cstdint>
#include <vector>

#include "classify/rule.h"
#include "function/answer.h"
#include "function/emitter.h"
#include "packet/packet.h"

namespace penstock::firewall {

class Rejecter {
 public:
  /// Borrows both. `ports`: by PortIndex, whether packets that arrive there are answered.
  Rejecter(const classify::Ruleset& rules, const std::vector<bool>& ports) noexcept : rules_(rules), ports_(ports) {}
  /// Before this, it sends nothing. Borrows the emitter.
  void set_emitter(function::Emitter& emitter) noexcept { emitter_ = &emitter; }

  /// For a packet that is rejected, with a parsed layout. `counter`: of the rule or the policy that rejects it, as in
  /// RuleCounters. Not all packets may be answered (function/answer.h), and none with a wrong checksum is.
  void answer(PacketView packet, std::uint32_t counter) noexcept;
  /// Whether the counter is of a rule or a policy that rejects.
  [[nodiscard]] bool rejects(std::uint32_t counter) const noexcept;

 private:
  const classify::Ruleset& rules_;
  const std::vector<bool>& ports_;
  function::Emitter* emitter_ = nullptr;
  function::AnswerLimit limit_;
};

}  // namespace penstock::firewall
