// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Ethernet frames as rules of nftables' family `bridge` see them: of all protocols, and, as in Linux, without their
// outermost VLAN tag, which is taken off before the rules. IP behind a second tag is no IP there.

#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "classify/key.h"
#include "classify/step.h"
#include "nf/firewall/judge_core.h"
#include "packet/packet.h"

namespace penstock::firewall {

/// The link header of a frame that has a whole one.
struct BridgedFrame {
  std::uint16_t ether_type;      // after the addresses: that of the tag, if there is one
  std::optional<VlanTag> tag{};  // 802.1Q or 802.1ad
  std::uint16_t protocol;        // after the tag; with a length instead, as Linux: ETH_P_802_2 or ETH_P_802_3
  std::uint32_t network_offset;

  [[nodiscard]] bool is_ip() const noexcept { return protocol == ether_type::kIpv4 || protocol == ether_type::kIpv6; }
};

[[nodiscard]] std::optional<BridgedFrame> read_bridged_frame(PacketView packet) noexcept;

/// A value that rules about bridged frames test (classify::is_of_frame); empty: the frame does not have it.
[[nodiscard]] std::optional<classify::Number> value_of_frame(PacketView packet, classify::Value value) noexcept;
/// How long the frame is without its link header, padding included, as `meta length` says there.
[[nodiscard]] std::uint32_t bridged_bytes(PacketView packet) noexcept;

/// Whether rules apply to a frame. All frames are judged, unless a header that rules test is not whole.
[[nodiscard]] Standing bridged_standing(PacketView packet) noexcept;
/// The key of a frame that rules apply to. `exits`: by PortIndex, where the chain sends what comes from there. The
/// family of what is no IP is `other`, and its key has no protocol.
[[nodiscard]] classify::Key bridged_key(PacketView packet, std::span<const PortIndex> exits) noexcept;

}  // namespace penstock::firewall
