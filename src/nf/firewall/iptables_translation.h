// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Targets of iptables that translate addresses, with their options (iptables-extensions(8)).

#pragma once

#include <optional>
#include <string_view>

#include "classify/rule.h"
#include "packet/layout.h"

namespace penstock::firewall {

/// DNAT, SNAT, MASQUERADE, REDIRECT and NETMAP. `chain`: NETMAP translates destinations in PREROUTING and in chains
/// that are not built in, otherwise sources. Empty: not such a target.
[[nodiscard]] std::optional<classify::Translation> translation_of_target(std::string_view target,
                                                                         std::string_view chain);

/// --random, --random-fully, --persistent. False: not such an option.
[[nodiscard]] bool read_translation_flag(std::string_view option, classify::Translation& translation);
/// Whether the option has a value: --to-destination, --to-source, --to-ports, --to.
[[nodiscard]] bool has_translation_value(std::string_view option);
/// "10.0.0.5", "10.0.0.5-10.0.0.9:80-90", "[2001:db8::1]:80", "80-90", "10.0.0.0/24". False if the value is wrong.
[[nodiscard]] bool read_translation_value(std::string_view option, std::string_view value, NetworkLayer family,
                                          classify::Translation& translation);

}  // namespace penstock::firewall
