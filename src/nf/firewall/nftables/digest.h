// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Whether two rule sets, as `nft -j list ruleset` prints them, may differ for packets that are forwarded.

#pragma once

#include <cstddef>
#include <string_view>

namespace penstock::firewall::nftables {

/// Rule sets with the same digest are the same but for tables that see no forwarded packets: those whose base chains
/// are all at the hooks `input` and `output`, where programs such as fail2ban change sets all the time.
[[nodiscard]] std::size_t digest_of(std::string_view rules);

}  // namespace penstock::firewall::nftables
