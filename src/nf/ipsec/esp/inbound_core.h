// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The steps of an incoming packet around its opening, for host and device.

#pragma once

#include <cstdint>

#include "base/host_device.h"
#include "nf/ipsec/esp/decapsulate_core.h"
#include "nf/ipsec/esp/sequence_core.h"
#include "nf/ipsec/selection/selection_core.h"

namespace penstock::ipsec {

/// What has been received of an SA, as far as its next number's upper half depends on it.
struct Received {
  std::uint64_t top;
  std::uint32_t window;
};

/// What is to be done with a packet that came in: without a reason and a job, it is in the clear, unless it is one of
/// the fragments that have to be reassembled first.
struct Arrival {
  EspPacket esp;
  Opening opening;

  [[nodiscard]] PENSTOCK_HOST_DEVICE bool is_fragment() const noexcept { return esp.kind == EspPacket::Kind::fragment; }
};

/// Of a fragment: whether it waits for the others. The first one of UDP that may carry ESP, where no SA has ESP in UDP,
/// is refused; all others are in the clear.
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

/// `received_of(sa)` gives a Received; only of SAs with ESN.
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

/// Where no policies are given: whether the SA may carry what it brought.
[[nodiscard]] PENSTOCK_HOST_DEVICE inline Reason check_selector(const SelectionView& view, const classify::Key& key,
                                                                std::uint32_t sa) noexcept {
  return sa == kNoSa || selects(view.selectors[sa], key) ? Reason::none : Reason::policy_mismatch;
}

}  // namespace penstock::ipsec
