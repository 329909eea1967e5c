// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "nf/router/poptrie_build.h"

#include <algorithm>
#include <bit>
#include <utility>
#include <vector>

#include "nf/router/poptrie_core.h"
#include "nf/router/route_entry.h"

namespace penstock::router {
namespace {

constexpr unsigned kWordSlots = 64;
constexpr unsigned kWords = 4;
constexpr unsigned kLevels = (128 - PoptrieView::kRootBits) / PoptrieView::kStrideBits;

// The most places that one update takes: a node on every level, one word's block of children that moves, and the
// leaves of the words that change.
constexpr std::size_t kMostNodes = kLevels + kWordSlots;
constexpr std::size_t kMostLeaves = (kLevels + kWordSlots) * kWords;
// Node numbers have 31 bits, leaf numbers 32.
constexpr std::size_t kMostBytes = std::size_t{8} << 30;

std::uint32_t children_in(const PoptrieWord& word) { return count_ones(word.children); }
std::uint32_t leaves_in(const PoptrieWord& word) { return count_ones(word.runs); }
std::uint64_t slot_bit(unsigned slot) { return std::uint64_t{1} << slot; }

}  // namespace

PoptrieTable::PoptrieTable(FibLimit limit)
    : root_(PoptrieView::kRootEntries, kNoRouteEntry), limit_{std::min(limit.bytes, kMostBytes)} {}

PoptrieView PoptrieTable::view() const noexcept {
  return {root_.data(), nodes_.data(), leaves_.data(), static_cast<std::uint32_t>(nodes_.size()),
          static_cast<std::uint32_t>(leaves_.size())};
}

std::size_t PoptrieTable::memory_bytes() const noexcept {
  return root_.size() * sizeof(root_[0]) + nodes_.memory_bytes() + leaves_.memory_bytes();
}

Result<PoptrieTable> PoptrieTable::build(std::span<const Route6> routes, FibLimit limit) {
  const auto sorted = sorted_routes(routes);
  if (!sorted) return failure(sorted.error());
  PoptrieTable table(limit);
  table.rib_.reserve(sorted->size());
  for (const auto& [prefix, value] : *sorted) table.rib_.assign(prefix, value);

  const std::span<const Route6> all(*sorted);
  for (std::size_t i = 0; i < all.size();) {
    const auto& [prefix, value] = all[i];
    std::uint32_t& slot = table.root_[prefix.address.high >> 48];
    if (prefix.length <= PoptrieView::kRootBits) {  // those nested in it come later
      std::fill_n(&slot, std::size_t{1} << (PoptrieView::kRootBits - prefix.length), route_entry(prefix.length, value));
      ++i;
      continue;
    }
    std::size_t end = i;
    while (end < all.size() && all[end].prefix.address.high >> 48 == prefix.address.high >> 48) ++end;
    const std::uint32_t node = table.nodes_.take(1);
    table.build_node(node, PoptrieView::kRootBits, all.subspan(i, end - i), slot);
    slot = kChildFlag | node;
    i = end;
    if (table.memory_bytes() > table.limit_.bytes) return table_full(limit);
  }
  return table;
}

/// Fills the node that begins at bit `depth` from the sorted routes that end in it or below.
void PoptrieTable::build_node(std::uint32_t node, unsigned depth, std::span<const Route6> routes,
                              std::uint32_t inherited) {
  struct Child {
    unsigned byte;
    std::span<const Route6> routes;
  };
  std::array<Leaves, kWords> leaves;
  for (Leaves& word : leaves) word.fill(inherited);
  std::vector<Child> children;
  std::array<std::uint64_t, kWords> child_bits{};

  for (std::size_t i = 0; i < routes.size();) {
    const auto& [prefix, value] = routes[i];
    const unsigned byte = address_byte(prefix.address, depth);
    if (prefix.length <= depth + PoptrieView::kStrideBits) {
      const unsigned count = 1u << (depth + PoptrieView::kStrideBits - prefix.length);
      for (unsigned b = byte; b < byte + count; ++b) leaves[b / kWordSlots][b % kWordSlots] = route_entry(prefix.length, value);
      ++i;
      continue;
    }
    std::size_t end = i;
    while (end < routes.size() && address_byte(routes[end].prefix.address, depth) == byte) ++end;
    children.push_back({byte, routes.subspan(i, end - i)});
    child_bits[byte / kWordSlots] |= slot_bit(byte % kWordSlots);
    i = end;
  }

  for (unsigned w = 0; w < kWords; ++w) {
    PoptrieWord word{.children = child_bits[w]};
    if (word.children != 0) word.first_child = nodes_.take(children_in(word));
    store_leaves(word, leaves[w]);
    nodes_[node].words[w] = word;
  }
  for (const Child& child : children) {
    const unsigned slot = child.byte % kWordSlots;
    const PoptrieWord word = nodes_[node].words[child.byte / kWordSlots];
    build_node(child_of(word, slot), depth + PoptrieView::kStrideBits, child.routes,
               leaves[child.byte / kWordSlots][slot]);
  }
}

Result<void> PoptrieTable::insert(const Route6& route) {
  if (auto checked = check(route); !checked) return checked;
  const std::size_t most_bytes = kMostNodes * sizeof(PoptrieNode) + kMostLeaves * sizeof(std::uint32_t);
  if (memory_bytes() + most_bytes > limit_.bytes) return table_full(limit_);
  reserve_update();
  rib_.reserve(rib_.size() + 1);
  const std::uint32_t replaced = rib_.match(route.prefix, route.prefix.length);
  relabel(route.prefix, replaced, route_entry(route.prefix.length, route.value));
  rib_.assign(route.prefix, route.value);
  return {};
}

bool PoptrieTable::erase(const Ipv6Prefix& prefix) {
  if (!rib_.contains(prefix)) return false;
  reserve_update();
  relabel(prefix, rib_.match(prefix, prefix.length), rib_.covering(prefix));
  fold(prefix.address);
  rib_.erase(prefix);
  return true;
}

void PoptrieTable::reserve_update() {
  nodes_.reserve(kMostNodes);
  leaves_.reserve(kMostLeaves);
}

/// Gives the leaves in the prefix's range that are labelled `from` the label `to`. Nodes missing on the way are added.
void PoptrieTable::relabel(const Ipv6Prefix& prefix, std::uint32_t from, std::uint32_t to) {
  if (from == to) return;
  std::uint32_t* const slot = &root_[prefix.address.high >> 48];
  if (prefix.length <= PoptrieView::kRootBits) {
    for (std::uint32_t& entry : std::span(slot, std::size_t{1} << (PoptrieView::kRootBits - prefix.length))) {
      if (is_child(entry)) {
        relabel_node(child_node(entry), from, to);
      } else if (entry == from) {
        entry = to;
      }
    }
    return;
  }
  if (!is_child(*slot)) {
    const std::uint32_t first = nodes_.take(1);
    fill_node(first, *slot);
    *slot = kChildFlag | first;
  }
  std::uint32_t node = child_node(*slot);
  unsigned depth = PoptrieView::kRootBits;
  for (; prefix.length > depth + PoptrieView::kStrideBits; depth += PoptrieView::kStrideBits) {
    const unsigned byte = address_byte(prefix.address, depth);
    PoptrieWord& word = nodes_[node].words[byte / kWordSlots];
    if (!has_child(word, byte % kWordSlots)) add_child(word, byte % kWordSlots);
    node = child_of(word, byte % kWordSlots);
  }
  const unsigned begin = address_byte(prefix.address, depth);
  const unsigned end = begin + (1u << (depth + PoptrieView::kStrideBits - prefix.length));
  for (unsigned w = begin / kWordSlots; w * kWordSlots < end; ++w) {
    relabel_word(nodes_[node].words[w], begin > w * kWordSlots ? begin % kWordSlots : 0,
                 std::min(end - w * kWordSlots, kWordSlots), from, to);
  }
}

void PoptrieTable::relabel_word(PoptrieWord& word, unsigned begin, unsigned end, std::uint32_t from, std::uint32_t to) {
  Leaves leaves = load_leaves(word);
  for (unsigned slot = begin; slot < end; ++slot) {
    if (has_child(word, slot)) {
      relabel_node(child_of(word, slot), from, to);
    } else if (leaves[slot] == from) {
      leaves[slot] = to;
    }
  }
  store_leaves(word, leaves);
}

/// For a node that lies within the prefix's range. Either label stands for all that longer prefixes leave open there,
/// so runs neither merge nor split.
void PoptrieTable::relabel_node(std::uint32_t node, std::uint32_t from, std::uint32_t to) {
  for (const PoptrieWord& word : nodes_[node].words) {
    for (std::uint32_t i = 0; i < leaves_in(word); ++i) {
      std::uint32_t& leaf = leaves_[word.first_leaf + i];
      if (leaf == from) leaf = to;
    }
    for (std::uint32_t i = 0; i < children_in(word); ++i) relabel_node(word.first_child + i, from, to);
  }
}

/// Frees the nodes on the way to the address that have become uniform: no prefix ends in them or below.
void PoptrieTable::fold(const Ipv6Address& address) {
  std::uint32_t& entry = root_[address.high >> 48];
  if (!is_child(entry)) return;
  std::array<std::uint32_t, kLevels> way;
  std::size_t steps = 0;
  for (std::uint32_t node = child_node(entry);;) {
    way[steps] = node;
    const unsigned byte = address_byte(address, depth_of(steps));
    const PoptrieWord& word = nodes_[node].words[byte / kWordSlots];
    ++steps;
    if (!has_child(word, byte % kWordSlots)) break;
    node = child_of(word, byte % kWordSlots);
  }
  while (steps-- > 0) {
    const PoptrieNode& node = nodes_[way[steps]];
    const std::uint32_t label = leaves_[node.words[0].first_leaf];
    for (const PoptrieWord& word : node.words) {
      if (word.children != 0 || leaves_in(word) != 1 || leaves_[word.first_leaf] != label) return;
    }
    for (const PoptrieWord& word : node.words) leaves_.release(word.first_leaf, 1);
    if (steps == 0) {
      nodes_.release(way[0], 1);
      entry = label;
      return;
    }
    const unsigned byte = address_byte(address, depth_of(steps - 1));
    remove_child(nodes_[way[steps - 1]].words[byte / kWordSlots], byte % kWordSlots, label);
  }
}

unsigned PoptrieTable::depth_of(std::size_t level) noexcept {
  return PoptrieView::kRootBits + static_cast<unsigned>(level) * PoptrieView::kStrideBits;
}

/// A node without children whose leaves are all `label`.
void PoptrieTable::fill_node(std::uint32_t node, std::uint32_t label) {
  for (PoptrieWord& word : nodes_[node].words) {
    word = {.runs = 1, .first_leaf = leaves_.take(1)};
    leaves_[word.first_leaf] = label;
  }
}

/// Puts a node in the place of the slot's leaf.
void PoptrieTable::add_child(PoptrieWord& word, unsigned slot) {
  Leaves leaves = load_leaves(word);
  const std::uint32_t count = children_in(word);
  const std::uint32_t at = child_of(word, slot) - word.first_child;
  const std::uint32_t old = word.first_child;
  const bool moves = count == 0 || nodes_.room(count) != nodes_.room(count + 1);
  if (moves) {
    word.first_child = nodes_.take(count + 1);
    for (std::uint32_t i = 0; i < at; ++i) nodes_[word.first_child + i] = nodes_[old + i];
  }
  for (std::uint32_t i = count; i > at; --i) nodes_[word.first_child + i] = nodes_[old + i - 1];
  if (moves && count > 0) nodes_.release(old, count);
  word.children |= slot_bit(slot);
  fill_node(word.first_child + at, leaves[slot]);
  store_leaves(word, leaves);
}

/// Puts a leaf in the place of the slot's child, whose own leaves are released already.
void PoptrieTable::remove_child(PoptrieWord& word, unsigned slot, std::uint32_t label) {
  Leaves leaves = load_leaves(word);
  const std::uint32_t count = children_in(word);
  const std::uint32_t at = child_of(word, slot) - word.first_child;
  const std::uint32_t old = word.first_child;
  const bool moves = count == 1 || nodes_.room(count) != nodes_.room(count - 1);
  if (moves && count > 1) {
    word.first_child = nodes_.take(count - 1);
    for (std::uint32_t i = 0; i < at; ++i) nodes_[word.first_child + i] = nodes_[old + i];
  }
  for (std::uint32_t i = at + 1; i < count; ++i) nodes_[word.first_child + i - 1] = nodes_[old + i];
  if (moves) nodes_.release(old, count);
  word.children &= ~slot_bit(slot);
  leaves[slot] = label;
  store_leaves(word, leaves);
}

/// Each slot's leaf; what stands at a slot with a child means nothing.
PoptrieTable::Leaves PoptrieTable::load_leaves(const PoptrieWord& word) const noexcept {
  Leaves leaves;
  std::uint32_t next = word.first_leaf;
  std::uint32_t leaf = kNoRouteEntry;
  for (unsigned slot = 0; slot < kWordSlots; ++slot) {
    if ((word.runs & slot_bit(slot)) != 0) leaf = leaves_[next++];
    leaves[slot] = leaf;
  }
  return leaves;
}

void PoptrieTable::store_leaves(PoptrieWord& word, const Leaves& leaves) {
  Leaves stored;
  std::uint32_t count = 0;
  std::uint64_t runs = 0;
  for (unsigned slot = 0; slot < kWordSlots; ++slot) {
    if (has_child(word, slot) || (count > 0 && stored[count - 1] == leaves[slot])) continue;
    runs |= slot_bit(slot);
    stored[count++] = leaves[slot];
  }
  const std::uint32_t old = leaves_in(word);
  if (old == 0 || count == 0 || leaves_.room(old) != leaves_.room(count)) {
    if (old > 0) leaves_.release(word.first_leaf, old);
    if (count > 0) word.first_leaf = leaves_.take(count);
  }
  word.runs = runs;
  for (std::uint32_t i = 0; i < count; ++i) leaves_[word.first_leaf + i] = stored[i];
}

}  // namespace penstock::router
