// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The kernel's routes, nexthop objects and links, as its messages tell, and the routes of a router that follow from
// them:
//
//     messages ──▶ all routes of a prefix, nexthop objects, links ──▶ the best usable route ──▶ what has changed
//
// Owns a copy of the kernel's tables, in bounded memory. It does no I/O, and is used by one thread at a time.
//
// The kernel removes routes without a message if a link goes down or an address goes away (fib_sync_down_dev). Next
// hops through a link that is down are unusable at once; the rest is found by reading the tables again (`wants_dump`).

#pragma once

#include <array>
#include <boost/container/small_vector.hpp>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <unordered_map>
#include <vector>

#include "control/kernel/messages.h"
#include "control/kernel/path_table.h"
#include "nf/router/router.h"

namespace penstock::control {

/// Hashes the prefixes of either family.
struct PrefixHash {
  std::size_t operator()(const Ipv4Prefix& prefix) const noexcept {
    return mix64(std::uint64_t{prefix.address.bits} << 8 | prefix.length);
  }
  std::size_t operator()(const Ipv6Prefix& prefix) const noexcept {
    return mix64(mix64(prefix.address.high + prefix.length) + prefix.address.low);
  }
};

class KernelRoutes {
 public:
  /// The port of a link's interface; kNoPort: it is none of the chain's.
  using PortOf = std::function<PortIndex(const std::string& interface)>;

  /// Takes at most `most_routes`, used or not.
  explicit KernelRoutes(std::size_t most_routes) : most_routes_(most_routes) {}

  /// The tables to follow, in the order in which the kernel looks there. Routes of others are ignored.
  /// At most three.
  void follow_tables(std::vector<std::uint32_t> tables) { tables_ = std::move(tables); }
  void set_ports(PortOf port_of);

  void apply(const LinkMessage& message);
  void apply(const NexthopMessage& message);
  void apply(const AddressMessage& message) { wants_dump_ |= message.ipv4_removed; }
  void apply(const RouteMessage& message);

  /// Between these two, messages are the kernel's answer to the request for all of its links, nexthop objects and
  /// routes, in this order. Whatever is not among them is gone.
  void begin_dump();
  void end_dump();
  /// The kernel may have removed something without a message.
  [[nodiscard]] bool wants_dump() const noexcept { return wants_dump_; }
  void ask_for_dump() noexcept { wants_dump_ = true; }

  struct Link {
    std::string name;
    bool up = false, carrier = false, loopback = false, has_mac = false;
    MacAddress mac{};
    std::uint32_t vrf_table = 0;
    PortIndex port = kNoPort;
  };
  [[nodiscard]] const std::unordered_map<std::uint32_t, Link>& links() const noexcept { return links_; }
  /// The port of an interface; kNoPort: none, or it is unknown.
  [[nodiscard]] PortIndex port_of(std::uint32_t interface) const noexcept {
    const auto link = links_.find(interface);
    return link == links_.end() ? kNoPort : link->second.port;
  }

  [[nodiscard]] bool has_changes() const noexcept { return !v4_.dirty.empty() || !v6_.dirty.empty(); }
  /// Adds what has changed since the last call.
  void take_changes(router::RouterChange& change);
  /// Adds all routes, as of the last call of `take_changes`.
  void add_all(router::RouterChange& change) const;
  /// Calls `use` for the gateways of the routes in use.
  template <typename Use>
  void for_each_gateway(Use&& use) const {
    for (std::uint32_t place = 0; place < published_.places(); ++place) {
      if (!published_.is_group(place)) continue;
      for (const router::NextHop& hop : published_.hops(place)) {
        if (hop.has_gateway()) use(hop.gateway, hop.device);
      }
    }
  }

  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  /// Of one of the tables.
  [[nodiscard]] bool has_routes_of(std::uint32_t table) const noexcept {
    const std::uint8_t rank = rank_of(table);
    return rank < tables_.size() && by_rank_[rank] > 0;
  }
  [[nodiscard]] std::size_t left_out() const noexcept { return left_out_; }

 private:
  static constexpr std::uint32_t kNone = ~std::uint32_t{0};
  static constexpr std::size_t kMostTables = 3;

  struct Route {
    std::uint32_t metric = 0;
    std::uint32_t path = kNone;  // in paths_; none if it has a nexthop object, or leads nowhere
    std::uint32_t nexthop = 0;   // number of a nexthop object; 0: none
    std::uint8_t rank = 0;       // of its table
    RouteKind kind = RouteKind::unicast;
    bool joins = false;  // IPv6: shares the load with routes of the same metric
  };
  struct Entry {
    boost::container::small_vector<Route, 1> routes;  // by rank and metric, then in the kernel's order
    std::uint32_t published = kNone;                  // group in published_
    bool dirty = false, dumped = false;
  };
  template <typename Prefix>
  struct Family {
    std::unordered_map<Prefix, Entry, PrefixHash> entries;
    std::vector<Prefix> dirty;
  };
  struct Nexthop {
    bool blackhole = false;
    KernelHop hop;
    std::vector<NexthopMessage::Member> members;
    std::uint32_t uses = 0;  // by routes
    bool dumped = false;
  };
  struct Target {
    RouteKind kind;
    std::vector<router::NextHop> hops;
  };

  [[nodiscard]] std::uint8_t rank_of(std::uint32_t table) const noexcept;
  template <typename Prefix>
  void apply_to(Family<Prefix>& family, const Prefix& prefix, const RouteMessage& message, std::uint8_t rank);
  void add(Entry& entry, std::size_t at, const RouteMessage& message, std::uint8_t rank);
  void replace(Route& route, const RouteMessage& message);
  void remove(Entry& entry, std::size_t at);
  void fill(Route& route, const RouteMessage& message);
  void clear(Route& route);
  void apply_ipv4(Entry& entry, const RouteMessage& message, std::size_t first, std::size_t last, std::uint8_t rank);
  void apply_ipv6(Entry& entry, const RouteMessage& message, std::size_t first, std::size_t last, std::uint8_t rank);
  void remove_ipv6(Entry& entry, const RouteMessage& message, std::size_t first, std::size_t last);
  [[nodiscard]] bool same(const Route& route, const RouteMessage& message) const noexcept;
  template <typename Affected>
  void mark(Affected&& affected);
  template <typename Prefix>
  static void mark(Family<Prefix>& family, const Prefix& prefix, Entry& entry);
  void mark_links(std::uint32_t interface);
  [[nodiscard]] std::vector<std::uint32_t> with_groups(std::uint32_t nexthop) const;
  void remove_routes_of(std::uint32_t nexthop);

  [[nodiscard]] bool resolve(const Route& route, Target& target) const;
  bool add_hop(const KernelHop& hop, Target& target, bool& usable) const;
  template <typename Prefix, typename Result>
  void take_changes(Family<Prefix>& family, std::vector<Result>& routes, std::vector<Prefix>& erased,
                    router::NextHopTable& next_hops);
  template <typename Prefix>
  void sweep(Family<Prefix>& family);

  const std::size_t most_routes_;
  std::vector<std::uint32_t> tables_;
  PortOf port_of_;
  std::unordered_map<std::uint32_t, Link> links_;
  std::unordered_map<std::uint32_t, Nexthop> nexthops_;
  PathTable paths_;
  Family<Ipv4Prefix> v4_;
  Family<Ipv6Prefix> v6_;
  router::NextHopTable published_;  // with the uses of entries
  Target target_;                   // while a route is resolved
  std::size_t size_ = 0, left_out_ = 0;
  std::array<std::size_t, kMostTables> by_rank_{};  // routes
  bool dumping_ = false, wants_dump_ = false;
};

}  // namespace penstock::control
