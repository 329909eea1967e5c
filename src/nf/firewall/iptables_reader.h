// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Reads the output of `iptables-save` and `ip6tables-save` (with or without -c), which may be concatenated in one file.
// Uses the filter table, starting at one of its chains; called chains are expanded in place.

#pragma once

#include <string>
#include <string_view>

#include "nf/firewall/rule_reader.h"

namespace penstock::firewall {

[[nodiscard]] Result<Read<classify::Ruleset>> read_iptables(std::string_view text, const std::string& file,
                                                            const ReadOptions& options);

}  // namespace penstock::firewall
