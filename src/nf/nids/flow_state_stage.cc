// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "nf/nids/flow_state_stage.h"

#include <array>
#include <cstring>
#include <utility>

#include "function/burst.h"
#include "nf/nids/match/scan_range_core.h"
#include "packet/flow_hash.h"
#include "packet/parse_core.h"
#include "stack/sequence.h"

namespace penstock::nids {

namespace {

/// A key of addresses, ports and VLAN in their order, so that each direction has its own. Never 0.
std::uint64_t key_of(PacketView packet) noexcept {
  std::uint64_t source = 0, destination = 0;
  if (packet.layout().network == NetworkLayer::ipv4) {
    source = packet.ipv4().source.value();
    destination = packet.ipv4().destination.value();
  } else {
    const Ipv6Header& ip = packet.ipv6();
    source = fold_ipv6(ip.source[0].value(), ip.source[1].value());
    destination = fold_ipv6(ip.destination[0].value(), ip.destination[1].value());
  }
  source = with_port(source, packet.tcp().source_port.value());
  destination = with_port(destination, packet.tcp().destination_port.value());
  const std::uint64_t vlan = std::uint64_t{packet.layout().vlan_count} << 16 | packet.layout().vlan_tci;
  return mix64(mix64(mix64(source) + destination) + vlan) | 1;
}

}  // namespace

void FlowStateStage::fill(std::span<const PacketView> packets, std::span<std::byte* const> states) noexcept {
  std::array<Segment, function::kBurst> segments;
  for (std::size_t i = 0; i < packets.size(); ++i) {
    segments[i] = segment_of(packets[i]);
    if (segments[i].key == 0) continue;
    __builtin_prefetch(&entry_of(segments[i].key), 1);
    if (!segments[i].payload.empty()) __builtin_prefetch(&segments[i].payload.back());
  }
  for (std::size_t i = 0; i < packets.size(); ++i) {
    const FlowState state = segments[i].key != 0 ? take(segments[i]) : FlowState();
    std::memcpy(states[i], &state, sizeof state);
  }
}

/// Parses the packet like the device does.
FlowStateStage::Segment FlowStateStage::segment_of(PacketView packet) noexcept {
  PacketDescriptor descriptor = *packet.packet;
  const PacketView view{packet.frame, &descriptor};
  parse(view);
  const ScanRange range = scan_range(view.layout(), view.length());
  if (!range.is_payload || view.layout().transport != ip_protocol::kTcp) return {};
  const bool begins = (view.tcp().flags & TcpHeader::kSyn) != 0;
  const std::uint32_t sequence = view.tcp().sequence.value() + (begins ? 1 : 0);
  return {key_of(view), sequence, begins, {view.frame + range.begin, view.frame + range.end}};
}

/// Returns the state before the segment, and stores the state after it in the entry.
FlowState FlowStateStage::take(const Segment& segment) noexcept {
  Entry& entry = entry_of(segment.key);
  const std::uint32_t end = segment.sequence + static_cast<std::uint32_t>(segment.payload.size());
  if (entry.key != segment.key || segment.begins) {
    entry = {segment.key, end, {}};
    entry.state.append(segment.payload);
    return {};
  }
  if (segment.payload.empty() || !stack::after(end, entry.next)) return {};  // nothing new
  const FlowState before = segment.sequence == entry.next ? entry.state : FlowState();
  entry.state = before;
  entry.state.append(segment.payload);
  entry.next = end;
  return before;
}

}  // namespace penstock::nids
