// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "nf/router/router_stage.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "function/holding_stage.h"
#include "nf/router/error_sender.h"
#include "nf/router/explain.h"
#include "nf/router/forward_core.h"

namespace penstock::router {

namespace {

/// Like ForwardCore, but for many packets at once, so that their lookups overlap: checks all packets and gathers the
/// destinations, looks them up in bulk, then sends all.
class RouterStage : public function::CpuStage {
 public:
  RouterStage(function::Snapshot<RouterTables>& tables, CheckRules rules, const Devices& devices,
              const std::vector<function::PortAddresses>& addresses)
      : tables_(tables), rules_(rules), devices_(devices), errors_(addresses) {}

  void set_emitter(function::Emitter& emitter) noexcept override { errors_.set_emitter(emitter); }

  void begin_batch() noexcept override { tables_.refresh(); }
  std::string explain(PacketView packet) const override;

  void process(std::span<PacketView> packets) noexcept override {
    for (; packets.size() > kAtOnce; packets = packets.subspan(kAtOnce)) process_some(packets.first(kAtOnce));
    process_some(packets);
  }

 protected:
  void refresh() noexcept { tables_.refresh(); }
  [[nodiscard]] const RouterTables& tables() const noexcept { return tables_.table(); }
  [[nodiscard]] CheckRules rules() const noexcept { return rules_; }

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
    if (!rules_.answers) return;
    for (const PacketView packet : packets) {
      if (is_told(packet.packet->verdict)) errors_.tell(packet);
    }
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
      packet.packet->verdict = send(packet, lookups.values[i], view, rules_.host);
    }
  }

  function::Snapshot<RouterTables>::Reader tables_;
  CheckRules rules_;
  const Devices& devices_;
  Lookups<Ipv4Address> v4_;
  Lookups<Ipv6Address> v6_;
  ErrorSender errors_;
};

/// With the kernel's neighbours: packets to one that is missing are held while the kernel is asked for it.
class HoldingRouterStage final : public RouterStage, public function::HoldingStage {
 public:
  HoldingRouterStage(function::Snapshot<RouterTables>& tables, CheckRules rules, const Devices& devices,
                     const std::vector<function::PortAddresses>& addresses, MissingNeighbours& missing)
      : RouterStage(tables, rules, devices, addresses), missing_(missing) {}

  void begin_batch() noexcept override {
    const RouterTables* const before = &tables();
    refresh();
    // A change is always in another copy, and waits until all stages have left the one before it.
    has_news_ |= &tables() != before;
  }

  Reasons reasons() const noexcept override {
    return {static_cast<std::uint16_t>(DropReason::no_neighbour),
            static_cast<std::uint16_t>(DropReason::neighbour_unreachable)};
  }
  bool has_news() noexcept override { return std::exchange(has_news_, false); }

  std::optional<std::uint64_t> lacks(PacketView packet) noexcept override {
    const auto missing = missing_neighbour(packet);
    if (!missing) return std::nullopt;
    missing_.note(missing->first, missing->second);
    return NeighbourView::hash(missing->first, missing->second);
  }

  void process_again(std::span<PacketView> packets, bool news) noexcept override {
    process(packets);
    if (!news || tables().failed.empty()) return;
    for (const PacketView packet : packets) {
      if (packet.packet->verdict != Verdict::drop(DropReason::no_neighbour)) continue;
      const auto missing = missing_neighbour(packet);
      if (missing && std::ranges::find(tables().failed, *missing) != tables().failed.end())
        packet.packet->verdict = Verdict::drop(DropReason::neighbour_unreachable);
    }
  }

 private:
  /// The packet's next hop, its gateway or its destination, if its MAC address is unknown.
  [[nodiscard]] std::optional<NeighbourKeys::value_type> missing_neighbour(PacketView packet) const noexcept {
    if (!check(packet, rules()).alive()) return std::nullopt;
    const RouterTables& now = tables();
    const bool ipv4 = packet.layout().network == NetworkLayer::ipv4;
    const std::uint32_t value = ipv4 ? now.v4.lookup(Ipv4Address{packet.ipv4().destination.value()})
                                     : now.v6.lookup(packet.ipv6().destination_address());
    if (value == kNoRoute) return std::nullopt;
    const Hop& hop = select_hop(&now.hops[value], packet.packet->flow_hash);
    if (hop.kind != RouteKind::unicast || destination_mac(packet, hop, now.view()) != nullptr) return std::nullopt;
    const NextHop& next = now.next_hops[static_cast<std::size_t>(&hop - now.hops.data())];
    if (next.has_gateway()) return std::pair(next.gateway, next.device);
    return std::pair(
        ipv4 ? mapped(Ipv4Address{packet.ipv4().destination.value()}) : packet.ipv6().destination_address(),
        next.device);
  }

  MissingNeighbours& missing_;
  bool has_news_ = true;
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
  if (rules.host != kNoPort) access.reads |= FieldSet{Field::in_port};
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
          .emits = rules.answers,
          .asks_for_arrivals = rules.answers,
          .drop_reasons = kDropReasons};
}

std::unique_ptr<function::CpuStage> make_router_stage(function::Snapshot<RouterTables>& tables, CheckRules rules,
                                                      const Devices& devices,
                                                      const std::vector<function::PortAddresses>& addresses,
                                                      MissingNeighbours* missing) {
  if (missing == nullptr) return std::make_unique<RouterStage>(tables, rules, devices, addresses);
  return std::make_unique<HoldingRouterStage>(tables, rules, devices, addresses, *missing);
}

}  // namespace penstock::router
