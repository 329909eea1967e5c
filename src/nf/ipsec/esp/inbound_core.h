// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Steps before and after opening an inbound packet, for host and device.

#pragma once

#include <cstdint>

#include "base/host_device.h"
#include "nf/ipsec/esp/decapsulate_core.h"
#include "nf/ipsec/esp/sequence_core.h"
#include "nf/ipsec/selection/selection_core.h"

namespace penstock::ipsec {

/// The receiver state from which the upper half of an ESN is inferred.
struct Received {
  std::uint64_t top;
  std::uint32_t window;
};

/// What to do with an inbound packet. Without a reason and a job it is in the clear, unless it is a fragment that must
/// be reassembled first.
struct Arrival {
  EspPacket esp;
  Opening opening;

  [[nodiscard]] PENSTOCK_HOST_DEVICE bool is_fragment() const noexcept { return esp.kind == EspPacket::Kind::fragment; }
};

/// For a fragment: whether it must wait for the others. The first fragment of a UDP datagram that may carry ESP is
/// refused if no SA to that destination uses UDP encapsulation; all others count as in the clear.
[[nodiscard]] PENSTOCK_HOST_DEVICE inline Arrival find_fragment(PacketView packet, const EspPacket& esp,
                                                                const InboundView& inbound,
                                                                const NatTraversalPorts& ports) noexcept {
  const PacketLayout& layout = packet.layout();
  const auto refuse = [](Reason reason) { return Arrival{EspPacket::refuse(reason), {reason, {}}}; };
  if (takes_fragments(inbound, packet, esp.udp)) {
    return layout.has(PacketLayout::kTruncated) ? refuse(Reason::truncated) : Arrival{esp, {}};
  }
  const bool is_esp = esp.udp && layout.has(PacketLayout::kTransportHeader) && may_carry_esp(packet, ports);
  return is_esp && takes_fragments(inbound, packet, false) ? refuse(Reason::fragment) : Arrival{};
}

/// `received_of(sa)` returns a Received; called only for SAs with ESN.
template <typename ReceivedOf>
[[nodiscard]] PENSTOCK_HOST_DEVICE Arrival find_arrival(PacketView packet, const InboundView& inbound,
                                                        const NatTraversalPorts& ports, const SaView* sas,
                                                        const ReceivedOf& received_of) noexcept {
  const EspPacket esp = find_esp(packet, ports);
  if (esp.kind == EspPacket::Kind::none) return {};
  if (esp.kind == EspPacket::Kind::fragment) return find_fragment(packet, esp, inbound, ports);
  const bool whole = esp.kind == EspPacket::Kind::esp;
  const Found found = find_sa(inbound, packet, whole ? esp.spi : 0);
  if (found.kind == Found::Kind::not_ours) return {};
  if (!whole || found.kind == Found::Kind::no_sa) return {esp, {whole ? Reason::wrong_spi : esp.reason, {}}};
  const SaView& sa = sas[found.sa];
  std::uint64_t sequence = esp.sequence;
  if (sa.esn) {
    const Received received = received_of(found.sa);
    sequence = infer_sequence(received.top, received.window, esp.sequence);
  }
  return {esp, plan_decapsulation(packet, esp, sa, found.sa, sequence)};
}

/// Without policies: whether the SA's selector allows the packet that arrived on it.
[[nodiscard]] PENSTOCK_HOST_DEVICE inline Reason check_selector(const SelectionView& view, const classify::Key& key,
                                                                std::uint32_t sa) noexcept {
  return sa == kNoSa || selects(view.selectors[sa], key) ? Reason::none : Reason::policy_mismatch;
}

}  // namespace penstock::ipsec
