// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The steps of an incoming packet around its opening, for host and device.

#pragma once

#include <cstdint>

#include "base/host_device.h"
#include "nf/ipsec/decapsulate_core.h"
#include "nf/ipsec/selection_core.h"
#include "nf/ipsec/sequence_core.h"

namespace penstock::ipsec {

/// What has been received of an SA, as far as its next number's upper half depends on it.
struct Received {
  std::uint64_t top;
  std::uint32_t window;
};

/// What is to be done with a packet that came in: without a reason and a job, it is in the clear.
struct Arrival {
  Reason reason = Reason::none;
  EspPacket esp;
  CryptoJob job;
};

/// `received_of(sa)` gives a Received; only of SAs with ESN.
template <typename ReceivedOf>
[[nodiscard]] PENSTOCK_HOST_DEVICE Arrival find_arrival(PacketView packet, const InboundView& inbound,
                                                        const NatTraversalPorts& ports, const SaView* sas,
                                                        const ReceivedOf& received_of) noexcept {
  Arrival arrival;
  arrival.esp = find_esp(packet, ports);
  if (arrival.esp.kind == EspPacket::Kind::none) return arrival;
  const bool whole = arrival.esp.kind == EspPacket::Kind::esp;
  const Found found = find_sa(inbound, packet, whole ? arrival.esp.spi : 0);
  if (found.kind == Found::Kind::not_ours) return arrival;
  if (!whole || found.kind == Found::Kind::no_sa) {
    arrival.reason = whole ? Reason::wrong_spi : arrival.esp.reason;
    return arrival;
  }
  const SaView& sa = sas[found.sa];
  std::uint64_t sequence = arrival.esp.sequence;
  if (sa.esn) {
    const Received received = received_of(found.sa);
    sequence = infer_sequence(received.top, received.window, arrival.esp.sequence);
  }
  const Opening opening = plan_decapsulation(packet, arrival.esp, sa, found.sa, sequence);
  arrival.reason = opening.reason;
  arrival.job = opening.job;
  return arrival;
}

/// Where no policies are given: whether the SA may carry what it brought.
[[nodiscard]] PENSTOCK_HOST_DEVICE inline Reason check_selector(const SelectionView& view, const firewall::Key& key,
                                                                std::uint32_t sa) noexcept {
  return sa == kNoSa || selects(view.selectors[sa], key) ? Reason::none : Reason::policy_mismatch;
}

}  // namespace penstock::ipsec
