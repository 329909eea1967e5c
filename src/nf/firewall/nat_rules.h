// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Rules that translate addresses at a hook: chains of type nat. Connections that begin are compared with them once; all
// their packets are translated alike (src/conntrack).

#pragma once

#include <memory>
#include <optional>
#include <tl/expected.hpp>
#include <vector>

#include "base/ip_address.h"
#include "classify/classifier.h"
#include "classify/rule.h"
#include "conntrack/nat_range.h"
#include "function/port_addresses.h"
#include "nf/firewall/judge_core.h"
#include "nf/firewall/rule_reader.h"
#include "packet/packet.h"

namespace penstock::firewall {

class StepRunner;

struct NatRules {
  Hook hook = Hook::prerouting;  // not forward
  classify::Ruleset rules;
  std::vector<function::PortAddresses> addresses;            // by PortIndex: for masquerading and redirects
  std::unique_ptr<const classify::Classifier> classifier{};  // borrows `rules`

  /// The end of a connection that is translated at this hook.
  [[nodiscard]] conntrack::NatKind kind() const noexcept {
    const bool destination = hook == Hook::prerouting || hook == Hook::output;
    return destination ? conntrack::NatKind::destination : conntrack::NatKind::source;
  }
  /// What the packet's connection, which begins with it, is translated to; an empty range if no rule says. Otherwise
  /// why it is dropped: a rule or the policy says so, or a rule translates to what there is not.
  /// `steps`: null if the rules have none.
  [[nodiscard]] tl::expected<conntrack::NatRange, DropReason> range_for(PacketView packet, std::uint8_t connection,
                                                                        StepRunner* steps) const noexcept;
  /// The same in two steps: by this entry, the classifier's for the packet, which may be kNoEntry.
  [[nodiscard]] tl::expected<conntrack::NatRange, DropReason> range_of(PacketView packet, NetworkLayer family,
                                                                       std::uint32_t entry) const noexcept;

 private:
  [[nodiscard]] std::optional<Ipv6Address> address_of(PortIndex port, NetworkLayer family) const noexcept;
};

}  // namespace penstock::firewall
