// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "nf/router/multibit_build.h"

#include <algorithm>
#include <array>

#include "nf/router/route_entry.h"

namespace penstock::router {
namespace {

// Gathers take signed 32-bit indices of entries.
constexpr std::size_t kMostBytes = std::size_t{8} << 30;

}  // namespace

template <unsigned kRootBits, unsigned kStrideBits>
MultibitTable<kRootBits, kStrideBits>::MultibitTable(FibLimit limit)
    : root_(View::kRootEntries, kNoRouteEntry), limit_{std::min(limit.bytes, kMostBytes)} {}

template <unsigned kRootBits, unsigned kStrideBits>
Result<MultibitTable<kRootBits, kStrideBits>> MultibitTable<kRootBits, kStrideBits>::build(
    std::span<const Route4> routes, FibLimit limit) {
  const auto sorted = sorted_routes(routes);
  if (!sorted) return failure(sorted.error());
  MultibitTable table(limit);
  table.rib_.reserve(sorted->size());
  for (const auto& [prefix, value] : *sorted) {
    if (!table.reserve_nodes(table.missing_nodes(prefix))) return table_full(limit);
    std::ranges::fill(table.range(prefix), route_entry(prefix.length, value));  // nested prefixes come later
    table.rib_.assign(prefix, value);
  }
  return table;
}

template <unsigned kRootBits, unsigned kStrideBits>
Result<void> MultibitTable<kRootBits, kStrideBits>::insert(const Route4& route) {
  if (auto checked = check(route); !checked) return checked;
  if (!reserve_nodes(missing_nodes(route.prefix))) return table_full(limit_);
  rib_.reserve(rib_.size() + 1);
  const std::uint32_t replaced = rib_.match(route.prefix, route.prefix.length);
  relabel(range(route.prefix), replaced, route_entry(route.prefix.length, route.value));
  rib_.assign(route.prefix, route.value);
  return {};
}

template <unsigned kRootBits, unsigned kStrideBits>
bool MultibitTable<kRootBits, kStrideBits>::erase(const Ipv4Prefix& prefix) {
  if (!rib_.contains(prefix)) return false;
  free_nodes_.reserve(free_nodes_.size() + View::kLevels);
  relabel(range(prefix), rib_.match(prefix, prefix.length), rib_.covering(prefix));
  fold(prefix.address);
  rib_.erase(prefix);
  return true;
}

template <unsigned kRootBits, unsigned kStrideBits>
std::uint32_t MultibitTable<kRootBits, kStrideBits>::missing_nodes(const Ipv4Prefix& prefix) const noexcept {
  const View table = view();
  std::uint32_t entry = table.root[prefix.address.bits >> (32 - kRootBits)];
  unsigned depth = kRootBits;
  for (; depth < prefix.length && is_child(entry); depth += kStrideBits) {
    entry = table.nodes[slot_index(child_node(entry), prefix.address, depth)];
  }
  return depth < prefix.length ? (prefix.length - depth + kStrideBits - 1) / kStrideBits : 0;
}

template <unsigned kRootBits, unsigned kStrideBits>
bool MultibitTable<kRootBits, kStrideBits>::reserve_nodes(std::uint32_t count) {
  if (count <= free_nodes_.size()) return true;
  const std::size_t entries = nodes_.size() + ((count - free_nodes_.size()) << kStrideBits);
  if ((root_.size() + entries) * sizeof(root_[0]) > limit_.bytes) return false;
  if (entries > nodes_.capacity()) nodes_.reserve(entries + entries / 2);
  return true;
}

/// A node whose entries are all `fill`; reserve_nodes() has made room for it.
template <unsigned kRootBits, unsigned kStrideBits>
std::uint32_t MultibitTable<kRootBits, kStrideBits>::add_node(std::uint32_t fill) noexcept {
  if (free_nodes_.empty()) {
    nodes_.resize(nodes_.size() + View::kNodeEntries, fill);
    return node_count() - 1;
  }
  const std::uint32_t index = free_nodes_.back();
  free_nodes_.pop_back();
  std::ranges::fill(node(index), fill);
  return index;
}

/// The entries that the prefix covers in the node where it ends. Nodes missing on the way there are added.
template <unsigned kRootBits, unsigned kStrideBits>
std::span<std::uint32_t> MultibitTable<kRootBits, kStrideBits>::range(const Ipv4Prefix& prefix) noexcept {
  std::uint32_t* slot = &root_[prefix.address.bits >> (32 - kRootBits)];
  unsigned depth = kRootBits;
  for (; depth < prefix.length; depth += kStrideBits) {
    if (!is_child(*slot)) *slot = kChildFlag | add_node(*slot);  // the room is reserved: nodes_ stays where it is
    slot = &nodes_[slot_index(child_node(*slot), prefix.address, depth)];
  }
  return {slot, std::size_t{1} << (depth - prefix.length)};
}

template <unsigned kRootBits, unsigned kStrideBits>
void MultibitTable<kRootBits, kStrideBits>::relabel(std::span<std::uint32_t> entries, std::uint32_t from,
                                                    std::uint32_t to) noexcept {
  for (std::uint32_t& entry : entries) {
    if (is_child(entry)) {
      relabel(node(child_node(entry)), from, to);
    } else if (entry == from) {
      entry = to;
    }
  }
}

/// Frees the nodes on the way to the address that have become uniform: no prefix ends in them or below.
template <unsigned kRootBits, unsigned kStrideBits>
void MultibitTable<kRootBits, kStrideBits>::fold(Ipv4Address address) noexcept {
  std::array<std::uint32_t*, View::kLevels + 1> way;
  std::size_t steps = 0;
  unsigned depth = kRootBits;
  way[steps] = &root_[address.bits >> (32 - kRootBits)];
  for (; is_child(*way[steps]); depth += kStrideBits, ++steps) {
    way[steps + 1] = &nodes_[slot_index(child_node(*way[steps]), address, depth)];
  }
  while (steps-- > 0) {
    const std::uint32_t index = child_node(*way[steps]);
    const std::span<const std::uint32_t> entries = node(index);
    const std::uint32_t first = entries[0];
    if (is_child(first) || !std::ranges::all_of(entries, [&](std::uint32_t entry) { return entry == first; })) return;
    *way[steps] = first;
    free_nodes_.push_back(index);
  }
}

template class MultibitTable<24, 8>;
template class MultibitTable<1, 1>;
template class MultibitTable<4, 4>;

}  // namespace penstock::router
