// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <optional>
#include <string_view>

#include "classify/rule.h"
#include "nf/firewall/nftables/document.h"

namespace penstock::firewall::nftables {

/// What `reject` sends. `type`: "icmp", "icmpv6" or "icmpx" (for both families); `code`: by name or number. Empty if
/// there is no such code.
[[nodiscard]] std::optional<classify::Answer> read_answer(std::string_view type, const Json& code);

}  // namespace penstock::firewall::nftables
