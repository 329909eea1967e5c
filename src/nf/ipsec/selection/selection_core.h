// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Applies policies to one packet, on host and device. Outbound (RFC 4301 §5.1): which SA protects it. Inbound (§5.2):
// which SA opens it, and whether the decapsulated or clear-text packet is allowed.

#pragma once

#include <cstdint>

#include "base/host_device.h"
#include "classify/key.h"
#include "nf/ipsec/crypto/crypto_job.h"
#include "nf/ipsec/reasons.h"
#include "nf/ipsec/selection/selection_layout.h"
#include "packet/flow_hash.h"
#include "packet/packet.h"

namespace penstock::ipsec {

/// The fields that policies match, for a packet with an IP header. As in Linux, ports and ICMP type and code are 0 for
/// all fragments, including the first, so that all fragments of a packet are treated alike.
PENSTOCK_HOST_DEVICE inline void make_selector_key(PacketView view, classify::Key& key) noexcept {
  classify::make_key(view, key);
  if (!view.layout().has(PacketLayout::kFragment)) return;
  key.source_port = key.destination_port = 0;
  key.kind = std::uint32_t{view.layout().transport} << classify::kKindDetailBits;
}

namespace selection_detail {

[[nodiscard]] PENSTOCK_HOST_DEVICE constexpr bool lies_in(const Ipv6Address& address, const Ipv6Address& prefix,
                                                          const Ipv6Address& mask) noexcept {
  return (((address.high ^ prefix.high) & mask.high) | ((address.low ^ prefix.low) & mask.low)) == 0;
}

[[nodiscard]] PENSTOCK_HOST_DEVICE constexpr bool is_any(const Ipv6Address& address) noexcept {
  return (address.high | address.low) == 0;
}

[[nodiscard]] PENSTOCK_HOST_DEVICE constexpr bool is_same(const Ipv6Address& a, const Ipv6Address& b) noexcept {
  return a.high == b.high && a.low == b.low;
}

}  // namespace selection_detail

[[nodiscard]] PENSTOCK_HOST_DEVICE inline bool selects(const SelectorView& selector,
                                                       const classify::Key& key) noexcept {
  using namespace selection_detail;
  if (selector.nothing) return false;
  if (selector.family == NetworkLayer::none) return true;
  if (selector.family != key.family || !lies_in(key.source, selector.source, selector.source_mask) ||
      !lies_in(key.destination, selector.destination, selector.destination_mask)) {
    return false;
  }
  if (selector.protocol != 0 && selector.protocol != key.protocol()) return false;
  if (selector.any_source_port && selector.any_destination_port) return true;
  std::uint32_t first = key.source_port;
  std::uint32_t second = key.destination_port;
  if (key.protocol() == ip_protocol::kIcmp || key.protocol() == ip_protocol::kIcmpv6) {
    first = key.has_detail() ? key.detail() >> 8 : classify::kNoTransportPort;
    second = key.has_detail() ? key.detail() & 0xff : classify::kNoTransportPort;
  }
  return (selector.any_source_port || selector.source_port == first) &&
         (selector.any_destination_port || selector.destination_port == second);
}

/// The decision for a packet: dropped if `reason` is set, unprotected if there is no SA.
struct Selected {
  Reason reason = Reason::none;
  std::uint32_t sa = kNoSa;
};

namespace selection_detail {

/// Whether an SA that matches the policy's template can carry the packet. In transport mode the SA's addresses must be
/// the packet's own.
[[nodiscard]] PENSTOCK_HOST_DEVICE inline bool carries(const SaView& sa, const SelectorView& selector,
                                                       const classify::Key& key) noexcept {
  if (!sa.tunnel && (sa.outer != key.family || !is_same(sa.destination, key.destination) ||
                     !(is_any(sa.source) || is_same(sa.source, key.source)))) {
    return false;
  }
  return selects(selector, key);
}

/// Chooses the first valid candidate or, if there is none, the first dying one. So a successor takes over as soon as it
/// is installed, and its predecessor serves until it ends. In transport mode, SAs for the packet's own source come
/// before those for any source, as in Linux.
template <typename StatusOf>
[[nodiscard]] PENSTOCK_HOST_DEVICE Selected choose_sa(const SelectionView& view, const PolicyView& policy,
                                                      const classify::Key& key, const StatusOf& status_of) noexcept {
  Selected selected{policy.handling == Handling::prefer ? Reason::none : Reason::no_sa, kNoSa};
  constexpr unsigned kNone = 4;
  unsigned best = kNone;  // lower is better
  for (std::uint32_t i = 0; i < policy.candidates && best != 0; ++i) {
    const std::uint32_t sa = view.candidates[policy.first_candidate + i];
    const SaStatus status = status_of(sa);
    const bool serves = status == SaStatus::valid || status == SaStatus::dying;
    const bool any_source = !view.sas[sa].tunnel && is_any(view.sas[sa].source);
    const unsigned rank = serves ? (any_source ? 2U : 0U) + (status == SaStatus::dying ? 1U : 0U) : kNone;
    if ((best != kNone && rank >= best) || !carries(view.sas[sa], view.selectors[sa], key)) continue;
    if (serves) {
      selected = {Reason::none, sa};
      best = rank;
    } else if (policy.handling == Handling::protect) {
      selected.reason = status == SaStatus::exhausted ? Reason::sequence_exhausted : Reason::lifetime;
    }
  }
  return selected;
}

}  // namespace selection_detail

/// Outbound: applies `policy`, which selects the packet. `status_of(sa)` returns an SaStatus.
template <typename StatusOf>
[[nodiscard]] PENSTOCK_HOST_DEVICE Selected select_outbound(const SelectionView& view, std::uint32_t policy,
                                                            const classify::Key& key,
                                                            const StatusOf& status_of) noexcept {
  switch (view.policies[policy].handling) {
    case Handling::bypass: break;
    case Handling::protect:
    case Handling::prefer: return selection_detail::choose_sa(view, view.policies[policy], key, status_of);
    case Handling::block: return {Reason::blocked, kNoSa};
    case Handling::refuse: return {Reason::unsupported, kNoSa};
  }
  return {};
}

/// Inbound: the result of looking up a packet's destination and SPI.
struct Found {
  enum class Kind : std::uint8_t { sa, no_sa, not_ours };
  Kind kind;
  std::uint32_t sa;
};

[[nodiscard]] PENSTOCK_HOST_DEVICE constexpr std::uint32_t slot_hash(NetworkLayer family,
                                                                     const Ipv6Address& destination,
                                                                     std::uint32_t spi) noexcept {
  const std::uint64_t address = mix64(destination.high ^ static_cast<std::uint64_t>(family)) ^ destination.low;
  return static_cast<std::uint32_t>(mix64(address ^ static_cast<std::uint64_t>(spi) << 32));
}

/// The slot with this destination and SPI, or the free slot where it would be inserted.
[[nodiscard]] PENSTOCK_HOST_DEVICE inline std::uint32_t find_slot(const InboundView& view, NetworkLayer family,
                                                                  const Ipv6Address& destination,
                                                                  std::uint32_t spi) noexcept {
  std::uint32_t at = slot_hash(family, destination, spi) & view.mask;
  for (;; at = (at + 1) & view.mask) {
    const SaSlot& slot = view.slots[at];
    const bool same =
        slot.spi == spi && slot.family == family && selection_detail::is_same(slot.destination, destination);
    if (same || slot.family == NetworkLayer::none) return at;
  }
}

/// A unicast SA is identified by SPI and destination (RFC 4301 §4.1). ESP for other destinations is not ours to open.
[[nodiscard]] PENSTOCK_HOST_DEVICE inline Found find_sa(const InboundView& view, NetworkLayer family,
                                                        const Ipv6Address& destination, std::uint32_t spi) noexcept {
  const SaSlot& slot = view.slots[find_slot(view, family, destination, spi)];
  if (slot.family != NetworkLayer::none && spi != 0) return {Found::Kind::sa, slot.sa};
  const SaSlot& address = view.slots[find_slot(view, family, destination, 0)];
  return {address.family != NetworkLayer::none ? Found::Kind::no_sa : Found::Kind::not_ours, kNoSa};
}

/// Like the above, for a packet with an IP header.
[[nodiscard]] PENSTOCK_HOST_DEVICE inline Found find_sa(const InboundView& view, PacketView packet,
                                                        std::uint32_t spi) noexcept {
  const NetworkLayer family = packet.layout().network;
  if (family == NetworkLayer::ipv4) {
    return find_sa(view, family, Ipv6Address{0, packet.ipv4().destination.value()}, spi);
  }
  return find_sa(view, family, packet.ipv6().destination_address(), spi);
}

/// Whether fragments for the packet's destination may be ESP that is ours to open. With `udp`, they are fragments of
/// UDP, of which only the first has ports.
[[nodiscard]] PENSTOCK_HOST_DEVICE inline bool takes_fragments(const InboundView& view, PacketView packet,
                                                               bool udp) noexcept {
  const NetworkLayer family = packet.layout().network;
  const Ipv6Address destination = family == NetworkLayer::ipv4 ? Ipv6Address{0, packet.ipv4().destination.value()}
                                                               : packet.ipv6().destination_address();
  const SaSlot& address = view.slots[find_slot(view, family, destination, 0)];
  return address.family != NetworkLayer::none && (!udp || address.udp);
}

/// Whether an SA matches a template. Of a tunnel's end points only the source is compared, as in Linux; an all-zero
/// source matches any of either family. The destination needs no check: inbound the packet has arrived there, and
/// outbound SAs are looked up by it.
[[nodiscard]] PENSTOCK_HOST_DEVICE inline bool satisfies(const SaView& sa, const TemplateView& wanted) noexcept {
  using namespace selection_detail;
  if (sa.tunnel != wanted.tunnel || (wanted.spi != 0 && wanted.spi != sa.spi) ||
      (wanted.reqid != 0 && wanted.reqid != sa.reqid)) {
    return false;
  }
  return !sa.tunnel || is_any(wanted.source) || (sa.outer == wanted.outer && is_same(wanted.source, sa.source));
}

/// Inbound: whether to forward a packet, as it is now, that arrived on `sa` (kNoSa: in the clear) and that `policy`
/// selects (kNoPolicy: none does). See RFC 4301 §5.2 step 4. Without a policy, as in Linux, a packet from a tunnel is
/// dropped, and others pass.
[[nodiscard]] PENSTOCK_HOST_DEVICE inline Reason check_inbound(const SelectionView& view, std::uint32_t policy,
                                                               const classify::Key& key, std::uint32_t sa) noexcept {
  const bool in_the_clear = sa == kNoSa;
  const bool by_tunnel = !in_the_clear && view.sas[sa].tunnel;
  if (!in_the_clear && !selects(view.selectors[sa], key)) return Reason::policy_mismatch;
  if (policy == kNoPolicy) return by_tunnel ? Reason::no_policy : Reason::none;
  const PolicyView& decides = view.policies[policy];
  switch (decides.handling) {
    case Handling::bypass: return by_tunnel ? Reason::policy_mismatch : Reason::none;
    case Handling::protect:
      if (in_the_clear) return Reason::not_protected;
      return satisfies(view.sas[sa], decides.wanted) ? Reason::none : Reason::policy_mismatch;
    case Handling::prefer:
      return !by_tunnel || satisfies(view.sas[sa], decides.wanted) ? Reason::none : Reason::policy_mismatch;
    case Handling::block: return Reason::blocked;
    case Handling::refuse: break;
  }
  return Reason::unsupported;
}

}  // namespace penstock::ipsec
