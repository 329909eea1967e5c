// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Reads what `iptables-save` and `ip6tables-save` print (with or without -c), one after the other in one file if need
// be: the filter table, from one of its chains on. The chains that it calls are written out in its place.

#pragma once

#include <string>
#include <string_view>

#include "nf/firewall/rule_reader.h"

namespace penstock::firewall {

[[nodiscard]] Result<Read<classify::Ruleset>> read_iptables(std::string_view text, const std::string& file,
                                                            const ReadOptions& options);

}  // namespace penstock::firewall
