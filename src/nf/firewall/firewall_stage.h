// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The CPU twin: groups of packets become keys, the engine finds their rules, and the rules' targets become verdicts.

#pragma once

#include <optional>
#include <span>

#include "chain/network_function.h"
#include "nf/firewall/firewall.h"

namespace penstock::firewall {

/// Why an IP packet is dropped before any rule is tried, if it is.
[[nodiscard]] inline std::optional<DropReason> unjudged(const PacketLayout& layout) noexcept {
  constexpr unsigned kWhole = PacketLayout::kNetworkHeader | PacketLayout::kTransportHeader;
  if ((layout.flags & kWhole) == kWhole) return std::nullopt;
  const bool ip = layout.has(PacketLayout::kNetworkHeader);
  // A transport header that is not one would pass the rules that are about it. Later fragments have none.
  constexpr unsigned kBroken = PacketLayout::kMalformed | PacketLayout::kMalformedTransport;
  if (ip && ((layout.flags & kBroken) == 0 || layout.has(PacketLayout::kLaterFragment))) return std::nullopt;
  return !ip && layout.has(PacketLayout::kTruncated) ? DropReason::truncated : DropReason::malformed;
}

class FirewallStage final : public chain::CpuStage {
 public:
  /// Borrows all three.
  FirewallStage(const Ruleset& rules, const Classifier& classifier, RuleCounters& counters) noexcept
      : rules_(rules), classifier_(classifier), counters_(counters) {}

  void process(std::span<PacketView> packets) noexcept override;

 private:
  void process_group(std::span<PacketView> packets) noexcept;
  void decide(PacketView packet, NetworkLayer family, std::uint32_t entry) noexcept;

  const Ruleset& rules_;
  const Classifier& classifier_;
  RuleCounters& counters_;
};

}  // namespace penstock::firewall
