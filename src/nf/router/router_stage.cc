// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "nf/router/router_stage.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <span>
#include <string>

#include "nf/router/explain.h"
#include "nf/router/forward_core.h"

namespace penstock::router {

namespace {

/// Like ForwardCore, but for many packets at once, so that their lookups overlap: checks all packets and gathers the
/// destinations, looks them up in bulk, then sends all.
class RouterStage final : public function::CpuStage {
 public:
  RouterStage(function::Snapshot<RouterTables>& tables, CheckRules rules, const Devices& devices,
              MissingNeighbours* missing)
      : tables_(tables), rules_(rules), devices_(devices), missing_(missing) {}

  void begin_batch() noexcept override { tables_.refresh(); }
  std::string explain(PacketView packet) const override;

  void process(std::span<PacketView> packets) noexcept override {
    for (; packets.size() > kAtOnce; packets = packets.subspan(kAtOnce)) process_some(packets.first(kAtOnce));
    process_some(packets);
  }

 private:
  static constexpr std::size_t kAtOnce = 128;

  template <typename Address>
  struct Lookups {
    std::array<Address, kAtOnce> addresses;
    std::array<std::uint32_t, kAtOnce> values;
    std::array<PacketView, kAtOnce> packets;
    std::size_t count = 0;

    void add(PacketView packet, Address address) noexcept {
      addresses[count] = address;
      packets[count++] = packet;
    }
  };

  void process_some(std::span<PacketView> packets) noexcept {
    v4_.count = 0;
    v6_.count = 0;
    for (const PacketView packet : packets) {
      const Verdict checked = check(packet, rules_);
      if (!checked.alive()) {
        packet.packet->verdict = checked;
      } else if (packet.layout().network == NetworkLayer::ipv4) {
        v4_.add(packet, Ipv4Address{packet.ipv4().destination.value()});
      } else {
        v6_.add(packet, packet.ipv6().destination_address());
      }
    }
    const RouterTables& tables = tables_.table();
    const ForwardView view = tables.view();
    look_up_and_send(v4_, tables.v4, view);
    look_up_and_send(v6_, tables.v6, view);
  }

  template <typename Address, typename Fib>
  void look_up_and_send(Lookups<Address>& lookups, const Fib& fib, const ForwardView& view) noexcept {
    if (lookups.count == 0) return;
    const std::span values = std::span(lookups.values).first(lookups.count);
    fib.lookup_bulk(std::span<const Address>(lookups.addresses).first(lookups.count), values);
    for (const std::uint32_t value : values) {
      if (value != kNoRoute) __builtin_prefetch(view.hops + value);
    }
    for (std::size_t i = 0; i < lookups.count; ++i) {
      const PacketView packet = lookups.packets[i];
      packet.packet->verdict = send(packet, lookups.values[i], view);
      if (missing_ != nullptr && packet.packet->verdict == Verdict::drop(DropReason::no_neighbour)) {
        note_missing(lookups.addresses[i], packet, lookups.values[i]);
      }
    }
  }

  static Ipv6Address as_neighbour(Ipv4Address address) noexcept { return mapped(address); }
  static Ipv6Address as_neighbour(const Ipv6Address& address) noexcept { return address; }

  /// The packet's next hop is its gateway, or its destination.
  template <typename Address>
  void note_missing(const Address& destination, PacketView packet, std::uint32_t value) noexcept {
    const RouterTables& tables = tables_.table();
    const Hop& hop = select_hop(&tables.hops[value], packet.packet->flow_hash);
    const NextHop& next = tables.next_hops[static_cast<std::size_t>(&hop - tables.hops.data())];
    missing_->note(next.has_gateway() ? next.gateway : as_neighbour(destination), next.device);
  }

  function::Snapshot<RouterTables>::Reader tables_;
  CheckRules rules_;
  const Devices& devices_;
  MissingNeighbours* missing_;
  Lookups<Ipv4Address> v4_;
  Lookups<Ipv6Address> v6_;
};

std::string RouterStage::explain(PacketView packet) const {
  const Verdict checked = check(packet, rules_);
  if (!checked.alive()) return std::string(kDropReasons[checked.value]);
  return route_of(packet, tables_.table(), devices_);
}

}  // namespace

function::NfTraits router_traits(CheckRules rules, bool rewrites_destination, bool rewrites_source) {
  // Link-layer multicast is detected by the destination MAC, which is read anyway, or by a cooked header, which parsing
  // reads.
  Access access{kParsedFields | FieldSet{Field::eth_dst, Field::ipv4_dst, Field::ipv4_ttl, Field::ipv4_checksum,
                                         Field::ipv6_dst, Field::ipv6_hop_limit, Field::flow_hash},
                FieldSet{Field::ipv4_ttl, Field::ipv4_checksum, Field::ipv6_hop_limit, Field::verdict}};
  if (rules.verify_checksum) access.reads |= kIpv4HeaderFields;
  if (rules.drop_martians) access.reads |= FieldSet{Field::ipv4_src, Field::ipv6_src};
  if (rewrites_destination) access.writes |= FieldSet{Field::eth_dst};
  if (rewrites_source) {
    access.reads |= FieldSet{Field::eth_src};
    access.writes |= FieldSet{Field::eth_src};
  }
  return {.name = "router",
          .summary = "forwards by longest prefix match",
          .cpu = access,
          .devices = {{function::Processor::gpu, access}},
          .finish = {},
          .growth = {},
          .chooses_port = true,
          .drop_reasons = kDropReasons};
}

std::unique_ptr<function::CpuStage> make_router_stage(function::Snapshot<RouterTables>& tables, CheckRules rules,
                                                      const Devices& devices, MissingNeighbours* missing) {
  return std::make_unique<RouterStage>(tables, rules, devices, missing);
}

}  // namespace penstock::router
