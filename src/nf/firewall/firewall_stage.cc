// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "nf/firewall/firewall_stage.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>

namespace penstock::firewall {

namespace {

/// Whether rules may look at a transport header that this packet, whole, would have, or may not know which it is.
bool lacks_header(const PacketLayout& layout) noexcept {
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

/// Why an IP packet is dropped before any rule is tried, if it is: without the header that rules are about it would
/// pass them.
std::optional<DropReason> unjudged(PacketView packet) noexcept {
  const PacketLayout& layout = packet.layout();
  constexpr unsigned kWhole = PacketLayout::kNetworkHeader | PacketLayout::kTransportHeader;
  if ((layout.flags & kWhole) == kWhole) return std::nullopt;
  if (!layout.has(PacketLayout::kNetworkHeader)) {
    return layout.has(PacketLayout::kTruncated) ? DropReason::truncated : DropReason::malformed;
  }
  // A rule without ports may still match it, as in Linux.
  if (layout.has(PacketLayout::kLaterFragment)) return std::nullopt;
  if ((layout.flags & (PacketLayout::kMalformed | PacketLayout::kMalformedTransport)) != 0) {
    return DropReason::malformed;
  }
  return lacks_header(layout) ? std::optional(DropReason::truncated) : std::nullopt;
}

}  // namespace

void FirewallStage::process(std::span<PacketView> packets) noexcept {
  while (!packets.empty()) {
    const std::size_t n = std::min(packets.size(), Classifier::kGroup);
    process_group(packets.first(n));
    packets = packets.subspan(n);
  }
}

void FirewallStage::process_group(std::span<PacketView> packets) noexcept {
  std::array<Key, Classifier::kGroup> keys;
  std::array<std::uint32_t, Classifier::kGroup> entries;
  std::array<std::uint8_t, Classifier::kGroup> judged;  // the packets that have a key
  std::size_t count = 0;
  for (std::size_t i = 0; i < packets.size(); ++i) {
    if (!packets[i].layout().is_ip()) continue;
    if (const auto reason = unjudged(packets[i])) {
      packets[i].packet->verdict = Verdict::drop(*reason);
      continue;
    }
    make_key(packets[i], keys[count]);
    judged[count++] = static_cast<std::uint8_t>(i);
  }
  classifier_.classify({keys.data(), count}, entries.data());
  for (std::size_t i = 0; i < count; ++i) decide(packets[judged[i]], keys[i].family, entries[i]);
}

void FirewallStage::decide(PacketView packet, NetworkLayer family, std::uint32_t entry) noexcept {
  std::size_t rule = RuleCounters::of_policy(rules_.rules.size(), family);
  Action action = action_of(rules_.policy(family));
  if (entry != kNoEntry) {
    rule = rules_.entries[entry].rule;
    action = rules_.entries[entry].action;
  }
  counters_.add(rule, packet.length());
  if (action == Action::accept) return;
  packet.packet->verdict = Verdict::drop(action == Action::reject ? DropReason::rejected : DropReason::denied);
}

std::string FirewallStage::explain(PacketView packet) const {
  if (!packet.layout().is_ip()) return "not IP: passes";
  if (const auto reason = unjudged(packet)) {
    return fmt::format("{} header", kDropReasons[static_cast<std::size_t>(*reason)]);
  }
  Key key;
  make_key(packet, key);
  std::uint32_t entry = kNoEntry;
  classifier_.classify({&key, 1}, &entry);
  if (entry == kNoEntry) return fmt::format("default policy: {}", name(rules_.policy(key.family)));
  const std::uint32_t index = rules_.entries[entry].rule;
  return fmt::format("rule {} (line {}): {}", index, rules_.rules[index].line, rules_.rules[index].text);
}

}  // namespace penstock::firewall
