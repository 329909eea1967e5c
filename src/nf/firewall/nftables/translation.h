// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Statements that translate addresses: {"snat": {"addr": "203.0.113.1"}}, {"masquerade": null}.

#pragma once

#include <string>
#include <string_view>

#include "classify/rule.h"
#include "conntrack/nat_range.h"
#include "nf/firewall/nftables/document.h"
#include "nf/firewall/nftables/problem.h"
#include "packet/layout.h"

namespace penstock::firewall::nftables {

/// Whether a statement of this kind translates.
[[nodiscard]] bool is_translation(std::string_view kind);

struct ReadTranslation {
  classify::Translation translation;
  NetworkLayer family = NetworkLayer::none;  // of its addresses; none: it has none
  /// {"key": …, "data": …}, a part of the value; null: there is none. It gives the addresses, or addresses and ports,
  /// or else the ports.
  const Json* map = nullptr;
  std::string_view mapped{};  // what it gives: "addr" or "port"
};
[[nodiscard]] Checked<ReadTranslation> read_translation(std::string_view kind, const Json& value);

/// Reads what an element of a map gives: addresses, ports, or a concatenation of both.
[[nodiscard]] Checked<ReadTranslation> read_mapped(const Json& value);
/// Whether maps to this type, as nft prints it ("ipv4_addr . inet_service"), are maps to such values.
[[nodiscard]] bool is_type_of_translations(const Json& type);
/// Adds what the element gives to the rest of the translation.
[[nodiscard]] Checked<classify::Translation> with_mapped(const ReadTranslation& rest,
                                                         const classify::Translation& mapped);

/// "192.168.0.1:80"
[[nodiscard]] std::string text_of(const conntrack::NatRange& range, NetworkLayer family);

}  // namespace penstock::firewall::nftables
