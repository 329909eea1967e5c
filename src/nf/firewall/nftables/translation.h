// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Statements that translate addresses: {"snat": {"addr": "203.0.113.1"}}, {"masquerade": null}.

#pragma once

#include <string_view>

#include "classify/rule.h"
#include "nf/firewall/nftables/document.h"
#include "nf/firewall/nftables/problem.h"
#include "packet/layout.h"

namespace penstock::firewall::nftables {

/// Whether a statement of this kind translates.
[[nodiscard]] bool is_translation(std::string_view kind);

struct ReadTranslation {
  classify::Translation translation;
  NetworkLayer family = NetworkLayer::none;  // of its addresses; none: it has none
};
[[nodiscard]] Checked<ReadTranslation> read_translation(std::string_view kind, const Json& value);

}  // namespace penstock::firewall::nftables
