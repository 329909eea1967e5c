// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// An entry of the security policy database (RFC 4301 §4.4.1), as `ip xfrm policy` prints it.
//
// Policies stand in the order in which they are tried: of those of a packet's direction the first that selects it
// decides. What a policy asks for and no code of ours can do makes it one that blocks, never one that is left out: what
// it would protect must not go in the clear.

#pragma once

#include <cstdint>
#include <vector>

#include "nf/ipsec/sa/sa.h"
#include "nf/ipsec/selection/selector.h"

namespace penstock::ipsec {

/// What an SA must be to do what a policy asks for. Always ESP.
struct Template {
  /// Tunnel mode: the SA's end points. Zeros in the source stand for any, of either family; inward the destination is
  /// not looked at. Transport mode: neither is looked at.
  IpAddress source;
  IpAddress destination;
  std::uint32_t spi = 0;    // 0: any
  std::uint32_t reqid = 0;  // 0: any
  Mode mode = Mode::tunnel;
  bool optional = false;  // `level use`: without an SA, packets go as they are

  friend bool operator==(const Template&, const Template&) = default;
};

enum class PolicyAction : std::uint8_t {
  allow,  // without templates: bypass; else as the templates say
  block,
};

struct Policy {
  Direction direction = Direction::out;
  PolicyAction action = PolicyAction::allow;
  Selector selector;
  std::uint32_t priority = 0;       // the lower is tried first; of equals the one that was added first
  std::uint32_t index = 0;          // the kernel's name of it; 0 where `ip` was not asked for it (-s)
  bool icmp = false;                // `flag icmp`: also by the packet that an ICMP error is about
  std::vector<Template> templates;  // in the order of their application, outwards
  Lifetimes lifetimes;
  std::uint32_t line = 0;  // where it begins in its file
};

}  // namespace penstock::ipsec
