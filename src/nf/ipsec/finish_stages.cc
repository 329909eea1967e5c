// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "nf/ipsec/finish_stages.h"

#include <cstring>
#include <ctime>

#include "nf/ipsec/device_tables.h"
#include "packet/parse_core.h"

namespace penstock::ipsec {

void OutboundFinishStage::finish(std::span<const PacketView> packets,
                                 std::span<const std::byte* const> findings) noexcept {
  const SaState::Seconds now = std::time(nullptr);
  Carrier carrier(now, carried_);
  // Otherwise the state stage has counted the packets.
  const bool counts = !ipsec_.tables().settings().decides_on_host();
  protected_count_ = 0;
  for (std::size_t i = 0; i < packets.size(); ++i) {
    OutboundFinding finding;
    std::memcpy(&finding, findings[i], sizeof finding);
    if (finding.sa == kNoSa) continue;
    protected_[protected_count_++] = packets[i].packet;
    if (!counts) continue;
    SaState& state = *ipsec_.tables().states()[finding.sa];
    const bool counted = carrier.count(state, finding.sa, finding.ip_bytes);
    if (!counted) packets[i].packet->verdict = Verdict::drop(Reason::lifetime);
    if (!counted || state.has_news() || state.tell_near_end()) ipsec_.limit_reached();
  }
}

void OutboundFinishStage::take_back(std::span<PacketView> packets) noexcept {
  const std::uint32_t mtu = ipsec_.tables().settings().mtu;
  std::size_t next = 0;
  for (const PacketView packet : packets) {
    // Both lists are in packet order.
    while (next < protected_count_ && protected_[next] < packet.packet) ++next;
    if (next == protected_count_) return;
    if (protected_[next] != packet.packet || packet.length() <= mtu) continue;
    parse(packet);
    if (packet.layout().ip_bytes() <= mtu) continue;
    if (!cut_into_fragments(packet, mtu, *emitter_)) packet.packet->verdict = Verdict::drop(Reason::no_room);
  }
}

void InboundFinishStage::finish(std::span<const PacketView> packets,
                                std::span<const std::byte* const> findings) noexcept {
  Carrier carrier(std::time(nullptr), carried_);
  for (std::size_t i = 0; i < packets.size(); ++i) {
    InboundFinding finding;
    std::memcpy(&finding, findings[i], sizeof finding);
    if (finding.sa == kNoSa) continue;
    SaState& state = *ipsec_.tables().states()[finding.sa];
    const Reason reason = carrier.admit(state, finding.sa, finding.sequence, finding.authentic != 0, finding.ip_bytes);
    // Takes precedence over verdicts on the decapsulated packet, as in the CPU stage.
    if (reason != Reason::none) packets[i].packet->verdict = Verdict::drop(reason);
  }
}

}  // namespace penstock::ipsec
