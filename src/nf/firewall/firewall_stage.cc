// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "nf/firewall/firewall_stage.h"

#include <algorithm>
#include <array>

namespace penstock::firewall {

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
    const PacketLayout& layout = packets[i].layout();
    if (!layout.is_ip()) continue;
    if (const auto reason = unjudged(layout)) {
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
  std::uint32_t rule = static_cast<std::uint32_t>(rules_.rules.size());
  auto action = static_cast<Action>(rules_.policy(family));
  if (entry != kNoEntry) {
    rule = rules_.entries[entry].rule;
    action = rules_.entries[entry].action;
  }
  counters_.add(rule, packet.length());
  if (action == Action::accept) return;
  packet.packet->verdict = Verdict::drop(action == Action::reject ? DropReason::rejected : DropReason::denied);
}

}  // namespace penstock::firewall
