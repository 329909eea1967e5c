// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// What a worker has found out about the flows of its last packets: the policy that selects them and, if only one SA can
// carry them, that SA. It spares later packets of a flow the look-up of policies. Owned by one worker, for tables that
// do not change. Flows that share an entry displace each other.

#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "nf/ipsec/selection/selection_core.h"

namespace penstock::ipsec {

class SelectionMemo {
 public:
  /// All that policies and selectors see of an IPv4 packet with ports: they do not see TCP flags.
  struct Flow {
    std::uint64_t addresses;
    std::uint32_t transport_ports;
    PortIndex in_port, out_port;
    std::uint32_t protocol;

    friend bool operator==(const Flow&, const Flow&) = default;
  };
  struct alignas(32) Entry {
    Flow flow{};  // protocol 0: none
    std::uint32_t policy = kNoPolicy;
    std::uint32_t sa = kNoSa;  // the only one that can carry the flow; kNoSa: there are none, or several
  };
  static_assert(sizeof(Entry) == 32);

  SelectionMemo() : entries_(std::size_t{1} << kBits) {}

  /// Whether packets with this layout have a flow here: IPv4 with complete headers, and no fragments.
  [[nodiscard]] static bool covers(const PacketLayout& layout) noexcept {
    constexpr std::uint16_t kWhole =
        PacketLayout::kNetworkHeader | PacketLayout::kTransportHeader | PacketLayout::kPorts;
    return layout.network == NetworkLayer::ipv4 && layout.flags == kWhole;
  }
  [[nodiscard]] static Flow flow_of(PacketView packet) noexcept {
    Flow flow;
    const PacketLayout& layout = packet.layout();
    std::memcpy(&flow.addresses, packet.frame + layout.network_offset + offsetof(Ipv4Header, source),
                sizeof flow.addresses);
    std::memcpy(&flow.transport_ports, packet.frame + layout.transport_offset, sizeof flow.transport_ports);
    flow.in_port = packet.packet->in_port;
    flow.out_port = packet.packet->verdict.value;
    flow.protocol = layout.transport;
    return flow;
  }
  /// Where this flow is, or may be stored.
  [[nodiscard]] Entry& entry_of(const Flow& flow) noexcept {
    const std::uint64_t ends =
        std::uint64_t{flow.transport_ports} << 32 | std::uint32_t{flow.in_port} << 16 | flow.out_port;
    constexpr std::uint64_t kOdd = 0x9e37'79b9'7f4a'7c15;
    return entries_[((flow.addresses * kOdd) ^ (ends + flow.protocol)) * kOdd >> (64 - kBits)];
  }

 private:
  static constexpr unsigned kBits = 14;  // 512 KiB

  std::vector<Entry> entries_;
};

/// The SA that alone can carry the packets that `policy` selects, and can carry this one; kNoSa if there is none, or if
/// several could. Whether it may be used now is another question.
[[nodiscard]] inline std::uint32_t only_sa(const SelectionView& view, std::uint32_t policy,
                                           const classify::Key& key) noexcept {
  if (policy == kNoPolicy) return kNoSa;
  const PolicyView& decides = view.policies[policy];
  if (decides.candidates != 1 || (decides.handling != Handling::protect && decides.handling != Handling::prefer))
    return kNoSa;
  const std::uint32_t sa = view.candidates[decides.first_candidate];
  return selection_detail::carries(view.sas[sa], view.selectors[sa], key) ? sa : kNoSa;
}

}  // namespace penstock::ipsec
