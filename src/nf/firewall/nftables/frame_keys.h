// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The expressions that only rules of family `bridge` test: of the link header, its VLAN tag, and ARP.

#pragma once

#include <cstdint>
#include <optional>

#include "nf/firewall/nftables/document.h"
#include "nf/firewall/nftables/problem.h"
#include "nf/firewall/nftables/steps.h"

namespace penstock::firewall::nftables {

/// Empty: it means the same as in other families.
[[nodiscard]] Checked<std::optional<StepKey>> read_frame_key(const Json& expression);

/// What an expression says about the type of frames. nft does not print the match for it that it makes.
struct FrameType {
  /// The type that frames need. nft compares it with the one after the link addresses, so that tagged frames do not
  /// match, unless an earlier match in the rule is about a tag or the network protocol.
  std::optional<std::uint16_t> needed{};
  bool is_of_tag_or_network = false;  // it is such a match itself
};
[[nodiscard]] FrameType frame_type_of(const Json& expression);

}  // namespace penstock::firewall::nftables
