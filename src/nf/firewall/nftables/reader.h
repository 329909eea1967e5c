// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Reads the output of `nft -j list ruleset`. The base chains of type filter at hook forward decide, in the order of
// their priorities. Refuses other chains that could drop or change packets that are forwarded.

#pragma once

#include <string>
#include <string_view>

#include "nf/firewall/rule_reader.h"

namespace penstock::firewall {

[[nodiscard]] Result<Read<classify::Ruleset>> read_nftables(std::string_view text, const std::string& file,
                                                            const ReadOptions& options);

}  // namespace penstock::firewall
