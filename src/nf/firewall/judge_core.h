// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// What a firewall does with one packet, for host and device, around the search for its rule: whether rules are tried at
// all, what their answer means, and where it is counted.

#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "base/host_device.h"
#include "classify/bitvector_core.h"
#include "classify/key.h"
#include "classify/linear_core.h"
#include "classify/rule.h"
#include "classify/rules_view.h"
#include "packet/packet.h"

namespace penstock::firewall {

/// By the value of Verdict::drop.
enum class DropReason : std::uint16_t {
  denied,     // by a rule or the policy
  rejected,   // the same, where the rule would have an answer sent
  malformed,  // a header that rules look at contradicts itself
  truncated,  // the capture ends inside a header that rules look at
};
inline constexpr std::array<std::string_view, 4> kDropReasons{"denied", "rejected", "malformed", "truncated"};

/// How a packet stands before any rule is tried. Without the header that rules are about it would pass them.
enum class Standing : std::uint8_t {
  judged,     // rules are tried
  not_ip,     // passes
  malformed,  // dropped, as `truncated` is
  truncated,
};

/// Whether rules may look at a transport header that this packet, whole, would have, or may not know which it is.
[[nodiscard]] PENSTOCK_HOST_DEVICE constexpr bool lacks_header(const PacketLayout& layout) noexcept {
  const bool ipv4 = layout.network == NetworkLayer::ipv4;
  switch (layout.transport) {
    case ip_protocol::kTcp:
    case ip_protocol::kUdp:
    case ip_protocol::kUdpLite:
    case ip_protocol::kSctp: return true;
    case ip_protocol::kIcmp: return ipv4;
    case ip_protocol::kIcmpv6:
    // Extension headers: parsing stops at one only where it is cut.
    case ip_protocol::kHopByHop:
    case ip_protocol::kRouting:
    case ip_protocol::kFragment:
    case ip_protocol::kAh:
    case ip_protocol::kDestinationOptions: return !ipv4;
    default: return false;
  }
}

[[nodiscard]] PENSTOCK_HOST_DEVICE constexpr Standing standing_of(const PacketLayout& layout) noexcept {
  constexpr unsigned kWhole = PacketLayout::kNetworkHeader | PacketLayout::kTransportHeader;
  if (!layout.is_ip()) return Standing::not_ip;
  if ((layout.flags & kWhole) == kWhole) return Standing::judged;
  if (!layout.has(PacketLayout::kNetworkHeader)) {
    return layout.has(PacketLayout::kTruncated) ? Standing::truncated : Standing::malformed;
  }
  // A rule without ports may still match it, as in Linux.
  if (layout.has(PacketLayout::kLaterFragment)) return Standing::judged;
  if ((layout.flags & (PacketLayout::kMalformed | PacketLayout::kMalformedTransport)) != 0) return Standing::malformed;
  return lacks_header(layout) ? Standing::truncated : Standing::judged;
}

/// Of a packet that no rule is tried on and that came with the verdict `so_far`.
[[nodiscard]] PENSTOCK_HOST_DEVICE constexpr Verdict verdict_of(Standing standing, Verdict so_far) noexcept {
  switch (standing) {
    case Standing::malformed: return Verdict::drop(DropReason::malformed);
    case Standing::truncated: return Verdict::drop(DropReason::truncated);
    case Standing::judged:
    case Standing::not_ip: break;
  }
  return so_far;
}

/// Of a packet that a rule or the policy decides about.
[[nodiscard]] PENSTOCK_HOST_DEVICE constexpr Verdict verdict_of(classify::Action action, Verdict so_far) noexcept {
  if (action == classify::Action::accept) return so_far;
  return Verdict::drop(action == classify::Action::reject ? DropReason::rejected : DropReason::denied);
}

/// The whole, for one packet; `Engine` is LinearView or BitVectorView.
template <typename Engine>
struct JudgeCore {
  using Finding = std::uint32_t;  // what counts the packet, or kNoCounter

  Engine engine;
  classify::RulesView rules;

  [[nodiscard]] PENSTOCK_HOST_DEVICE Verdict operator()(PacketView packet, Finding& counter) const noexcept {
    const Verdict so_far = packet.packet->verdict;
    const Standing standing = standing_of(packet.layout());
    if (standing != Standing::judged) {
      counter = classify::kNoCounter;
      return verdict_of(standing, so_far);
    }
    classify::Key key;
    classify::make_key(packet, key);
    const classify::Decision decided = classify::decision(rules, classify::deciding_entry(engine, key), key.family);
    counter = decided.counter;
    return verdict_of(decided.action, so_far);
  }
};

}  // namespace penstock::firewall
