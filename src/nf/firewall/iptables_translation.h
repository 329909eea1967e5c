// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Targets of iptables that translate addresses, with their options (iptables-extensions(8)).

#pragma once

#include <cstdint>
#include <string_view>

#include "classify/rule.h"
#include "packet/layout.h"

namespace penstock::firewall {

/// A target, and the options that it has.
struct TranslationTarget {
  std::string_view name;
  classify::Translation::Way way;  // of NETMAP: as its hook
  std::string_view value;          // the option that says to what it translates: --to-destination
  bool needs_value;
  std::uint8_t flags;  // of conntrack::NatRange, for which it has options
};
/// DNAT, SNAT, MASQUERADE, REDIRECT or NETMAP. Null: not such a target.
[[nodiscard]] const TranslationTarget* translation_target(std::string_view name) noexcept;
/// The flag of --random, --random-fully or --persistent; 0: not such an option.
[[nodiscard]] std::uint8_t translation_flag(std::string_view option) noexcept;
/// Protocols with which iptables takes ports in these options.
[[nodiscard]] bool may_translate_ports(std::uint8_t protocol) noexcept;
/// "10.0.0.5", "10.0.0.5-10.0.0.9:80-90", "[2001:db8::1]:80", "80-90", "10.0.0.0/24". False if the value is wrong.
[[nodiscard]] bool read_translation_value(std::string_view option, std::string_view value, NetworkLayer family,
                                          classify::Translation& translation);

}  // namespace penstock::firewall
