// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// An entry of the security policy database (RFC 4301 §4.4.1), as `ip xfrm policy` prints it.
//
// Policies are kept in the order in which they are tried: of the policies of a packet's direction, the first that
// selects it decides. A policy that asks for something unsupported becomes a blocking policy and is never skipped: what
// it would protect must not be sent in the clear.

#pragma once

#include <cstdint>
#include <vector>

#include "nf/ipsec/sa/sa.h"
#include "nf/ipsec/selection/selector.h"

namespace penstock::ipsec {

/// Requirements on the SA that a policy uses. The protocol is always ESP.
struct Template {
  /// Tunnel mode: the SA's end points. An all-zero source matches any source of either family; inbound, the destination
  /// is ignored. Transport mode: both are ignored.
  IpAddress source;
  IpAddress destination;
  std::uint32_t spi = 0;    // 0: any
  std::uint32_t reqid = 0;  // 0: any
  Mode mode = Mode::tunnel;
  bool optional = false;  // `level use`: without a matching SA, packets pass unprotected

  friend bool operator==(const Template&, const Template&) = default;
};

enum class PolicyAction : std::uint8_t {
  allow,  // without templates: bypass; otherwise as the templates say
  block,
};

struct Policy {
  Direction direction = Direction::out;
  PolicyAction action = PolicyAction::allow;
  Selector selector;
  std::uint32_t priority = 0;       // lower values are tried first; among equals, the policy that was added first
  std::uint32_t index = 0;          // the kernel's identifier; 0 if the file lacks it (`ip` without -s)
  bool icmp = false;                // `flag icmp`: an ICMP error also matches by the packet that it quotes
  std::vector<Template> templates;  // outbound, in the order in which they are applied
  Lifetimes lifetimes;
  std::uint32_t line = 0;  // where it starts in its file
};

}  // namespace penstock::ipsec
