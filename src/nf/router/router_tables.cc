// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "nf/router/router_tables.h"

#include <algorithm>
#include <numeric>
#include <variant>

namespace penstock::router {

namespace {

template <typename Fib, typename Prefix, typename Route>
Result<void> apply_routes(Fib& fib, const std::vector<Prefix>& erased, const std::vector<Route>& inserted,
                          std::vector<std::uint32_t>& replaced) {
  const auto note = [&](const Prefix& prefix) {
    if (const auto value = fib.value(prefix)) replaced.push_back(*value);
  };
  for (const Prefix& prefix : erased) {
    note(prefix);
    fib.erase(prefix);
  }
  for (const Route& route : inserted) {
    note(route.prefix);
    if (auto done = fib.insert(route); !done) return done;
  }
  return {};
}

}  // namespace

TableSpans RouterTables::spans() const noexcept {
  const NeighbourView slots = neighbours.view();
  return {std::visit([]<typename View>(const View& view) { return Trie4Spans(TrieSpans<View>(view)); }, v4.view()),
          TrieSpans<Fib6View>(v6.view()),
          hops,
          {slots.slots, std::size_t{slots.mask} + 1},
          ports};
}

Result<void> RouterTables::apply(const TableEdit& edit, std::vector<std::uint32_t>& replaced) {
  if (!edit.hops.empty()) ++versions.hops;
  if (!edit.erase4.empty() || !edit.insert4.empty()) ++versions.v4;
  if (!edit.erase6.empty() || !edit.insert6.empty()) ++versions.v6;
  for (const TableEdit::Place& place : edit.hops) {
    if (place.index >= hops.size()) {
      hops.resize(place.index + 1);
      next_hops.resize(place.index + 1);
    }
    hops[place.index] = place.hop;
    next_hops[place.index] = place.next;
  }
  if (auto done = apply_routes(v4, edit.erase4, edit.insert4, replaced); !done) return done;
  return apply_routes(v6, edit.erase6, edit.insert6, replaced);
}

void make_hops(RouteKind kind, std::span<const NextHop> group, const NeighbourTable& neighbours, bool has_neighbours,
               std::span<Hop> hops) {
  // Hash-threshold, as in the kernel (fib_rebalance): hop i ends at the rounded sum of the weights up to it.
  const std::uint64_t all = std::accumulate(group.begin(), group.end(), std::uint64_t{0},
                                            [](std::uint64_t sum, const NextHop& hop) { return sum + hop.weight; });
  std::uint64_t weight = 0;
  for (std::size_t i = 0; i < group.size(); ++i) {
    const NextHop& next = group[i];
    weight += next.weight;
    Hop hop;
    hop.upper_bound = static_cast<std::uint32_t>(((weight << 32) + all / 2) / all - 1);
    hop.port = next.device;
    hop.kind = kind;
    if (kind == RouteKind::unicast && has_neighbours) {
      const MacAddress* const mac = next.has_gateway() ? neighbours.view().find(next.gateway, next.device) : nullptr;
      hop.mac_source = !next.has_gateway() ? MacSource::destination
                       : mac == nullptr    ? MacSource::unresolved
                                           : MacSource::hop;
      if (mac != nullptr) hop.mac = *mac;
    }
    hops[i] = hop;
  }
}

}  // namespace penstock::router
