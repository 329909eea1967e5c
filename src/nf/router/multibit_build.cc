// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "nf/router/multibit_build.h"

#include <algorithm>
#include <cassert>

#include "nf/router/multibit_core.h"
#include "nf/router/route_entry.h"

namespace penstock::router {
namespace {

// Gather instructions take signed 32-bit indices of entries.
constexpr std::size_t kMostBytes = std::size_t{8} << 30;

}  // namespace

template <typename View>
MultibitTable<View>::MultibitTable(FibLimit limit)
    : root_(View::kRootEntries, kNoRouteEntry), limit_{std::min(limit.bytes, kMostBytes)} {}

template <typename View>
Result<MultibitTable<View>> MultibitTable<View>::build(std::span<const Route> routes, FibLimit limit) {
  const auto sorted = sorted_routes(routes);
  if (!sorted) return failure(sorted.error());
  MultibitTable table(limit);
  table.rib_.reserve(sorted->size());
  for (const auto& [prefix, value] : *sorted) {
    if (!table.reserve(prefix)) return table_full(limit);
    table.add_way(prefix);
    std::ranges::fill(table.range(prefix), route_entry(prefix.length, value));  // nested prefixes come later and
                                                                                // overwrite it
    table.rib_.assign(prefix, value);
  }
  return table;
}

template <typename View>
Result<void> MultibitTable<View>::insert(const Route& route) {
  if (auto checked = check(route); !checked) return checked;
  if (!reserve(route.prefix)) return table_full(limit_);
  rib_.reserve(rib_.size() + 1);
  add_way(route.prefix);
  const std::uint32_t replaced = rib_.match(route.prefix, route.prefix.length);
  const std::size_t level = level_of(route.prefix.length);
  relabel(range(route.prefix), level, replaced, route_entry(route.prefix.length, route.value));
  rib_.assign(route.prefix, route.value);
  return {};
}

template <typename View>
bool MultibitTable<View>::erase(const Prefix& prefix) {
  if (!rib_.contains(prefix)) return false;
  relabel(range(prefix), level_of(prefix.length), rib_.match(prefix, prefix.length), rib_.covering(prefix));
  fold(prefix.address);
  rib_.erase(prefix);
  return true;
}

template <typename View>
std::uint32_t MultibitTable<View>::lookup(const Address& address) const noexcept {
  return router::lookup(view(), address);
}

template <typename View>
std::uint32_t MultibitTable<View>::lookup_entry(const Address& address) const noexcept {
  return router::lookup_entry(view(), address);
}

/// The level below the one in which a prefix of this length ends.
template <typename View>
std::size_t MultibitTable<View>::level_of(unsigned length) noexcept {
  std::size_t level = 0;
  while (View::depth(level) < length) ++level;
  return level;
}

/// Reserves memory for the nodes that add_way() will add. False if the limit does not allow it.
template <typename View>
bool MultibitTable<View>::reserve(const Prefix& prefix) {
  const View table = view();
  std::uint32_t entry = table.root[bits_at(prefix.address, 0, View::kRootBits)];
  std::array<std::size_t, kStrides> added{};  // number of nodes, by stride
  std::size_t entries = nodes_.size();
  for (std::size_t level = 0; View::depth(level) < prefix.length; ++level) {
    const unsigned stride = View::stride(level);
    if (is_child(entry)) {
      entry = table.nodes[entry_index<View>(child_node(entry), prefix.address, level)];
    } else if (++added[stride] > free_nodes_[stride].size()) {
      entries += std::size_t{1} << stride;
    }
  }
  if ((root_.size() + entries) * sizeof(root_[0]) > limit_.bytes) return false;
  if (entries > nodes_.capacity()) nodes_.reserve(entries + entries / 2);
  return true;
}

/// Adds the missing nodes on the path to the prefix's range. reserve() has made room, so nothing is reallocated.
template <typename View>
void MultibitTable<View>::add_way(const Prefix& prefix) {
  std::uint32_t* entry = &root_[bits_at(prefix.address, 0, View::kRootBits)];
  for (std::size_t level = 0; View::depth(level) < prefix.length; ++level) {
    if (!is_child(*entry)) *entry = child_entry(add_node(level, *entry));
    entry = &nodes_[entry_index<View>(child_node(*entry), prefix.address, level)];
  }
}

/// The entries that the prefix covers in the node where it ends. The path to that node must exist, as it does for every
/// route.
template <typename View>
std::span<std::uint32_t> MultibitTable<View>::range(const Prefix& prefix) noexcept {
  std::uint32_t* entry = &root_[bits_at(prefix.address, 0, View::kRootBits)];
  std::size_t level = 0;
  for (; View::depth(level) < prefix.length; ++level) {
    assert(is_child(*entry));
    entry = &nodes_[entry_index<View>(child_node(*entry), prefix.address, level)];
  }
  return {entry, std::size_t{1} << (View::depth(level) - prefix.length)};
}

template <typename View>
std::uint32_t MultibitTable<View>::add_node(std::size_t level, std::uint32_t fill) {
  std::vector<std::uint32_t>& free = free_nodes_[View::stride(level)];
  if (free.empty()) {
    const std::size_t first = nodes_.size();
    nodes_.resize(first + (std::size_t{1} << View::stride(level)), fill);
    return static_cast<std::uint32_t>(first >> View::kUnitBits);
  }
  const std::uint32_t index = free.back();
  free.pop_back();
  std::ranges::fill(node(index, level), fill);
  return index;
}

template <typename View>
std::span<std::uint32_t> MultibitTable<View>::node(std::uint32_t node, std::size_t level) noexcept {
  return {&nodes_[std::size_t{node} << View::kUnitBits], std::size_t{1} << View::stride(level)};
}

/// Replaces label `from` with `to` in these entries and below them, which are the addresses that no longer prefix
/// covers.
template <typename View>
void MultibitTable<View>::relabel(std::span<std::uint32_t> entries, std::size_t children_level, std::uint32_t from,
                                  std::uint32_t to) noexcept {
  for (std::uint32_t& entry : entries) {
    if (is_child(entry)) {
      relabel(node(child_node(entry), children_level), children_level + 1, from, to);
    } else if (entry == from) {
      entry = to;
    }
  }
}

/// Frees the nodes on the path to the address in or below which no prefix ends: a single prefix covers them, or none.
/// Equal entries are not a sufficient condition: the two halves of a node may have equal values, and either may be
/// erased later.
template <typename View>
void MultibitTable<View>::fold(const Address& address) {
  std::array<std::uint32_t*, View::kLevels + 1> way;
  std::size_t level = 0;
  way[0] = &root_[bits_at(address, 0, View::kRootBits)];
  for (; is_child(*way[level]); ++level) {
    way[level + 1] = &nodes_[entry_index<View>(child_node(*way[level]), address, level)];
  }
  while (level-- > 0) {
    const std::uint32_t index = child_node(*way[level]);
    const std::span<const std::uint32_t> entries = node(index, level);
    const std::uint32_t first = entries[0];
    if (is_child(first) || entry_length(first) > View::depth(level)) return;
    if (!std::ranges::all_of(entries, [&](std::uint32_t entry) { return entry == first; })) return;
    free_nodes_[View::stride(level)].push_back(index);
    *way[level] = first;
  }
}

template class MultibitTable<Dir24View>;
template class MultibitTable<Trie1View>;
template class MultibitTable<Trie4View>;
template class MultibitTable<Trie6View>;

}  // namespace penstock::router
