// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "nf/firewall/nat_rules.h"

#include "classify/key.h"
#include "nf/firewall/steps/step_runner.h"

namespace penstock::firewall {

tl::expected<conntrack::NatRange, DropReason> NatRules::range_for(PacketView packet, std::uint8_t connection,
                                                                  StepRunner* steps) const noexcept {
  classify::Key key;
  classify::make_key(packet, key, connection);
  std::uint32_t entry = classify::kNoEntry;
  classifier->classify({&key, 1}, &entry);
  if (steps != nullptr) {
    const auto decided = steps->decide(packet, key, entry);
    if (!decided) return tl::unexpected(DropReason::denied);
    entry = *decided;
  }
  return range_of(packet, key.family, entry);
}

tl::expected<conntrack::NatRange, DropReason> NatRules::range_of(PacketView packet, NetworkLayer family,
                                                                 std::uint32_t entry) const noexcept {
  using Way = classify::Translation::Way;
  if (rules.target(entry, family) != classify::Target::accept) return tl::unexpected(DropReason::denied);
  if (entry == classify::kNoEntry) return conntrack::NatRange{};
  const auto& translation = rules.rules[rules.entries[entry].rule].translation;
  if (!translation) return conntrack::NatRange{};
  const bool of_source = translation->way == Way::source || translation->way == Way::masquerade;
  if (of_source != (kind() == conntrack::NatKind::source)) return tl::unexpected(DropReason::untranslated);
  conntrack::NatRange range = translation->range;
  if (translation->way == Way::masquerade || translation->way == Way::redirect) {
    const PortIndex port = translation->way == Way::masquerade ? packet.packet->verdict.value : packet.packet->in_port;
    const std::optional<Ipv6Address> address = address_of(port, family);
    if (!address) return tl::unexpected(DropReason::untranslated);
    range.first_address = range.last_address = *address;
    range.flags |= conntrack::NatRange::kAddresses;
  }
  return range;
}

std::optional<Ipv6Address> NatRules::address_of(PortIndex port, NetworkLayer family) const noexcept {
  if (port >= addresses.size()) return std::nullopt;
  if (family == NetworkLayer::ipv6) return addresses[port].ipv6;
  if (!addresses[port].ipv4) return std::nullopt;
  return Ipv6Address{0, addresses[port].ipv4->bits};
}

}  // namespace penstock::firewall
