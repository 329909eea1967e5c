// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The router's tables in host memory, as they are copied to a device: a view of a RouterTables, or of a recipe that
// another process made of one, whose tries are runs of entries. Borrows everything.

#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <variant>

#include "nf/router/entry_runs.h"
#include "nf/router/fib.h"
#include "nf/router/forward_core.h"

namespace penstock::router {

/// The arrays of a multibit trie.
template <typename View>
struct TrieSpans {
  std::span<const std::uint32_t> root;  // View::kRootEntries
  std::span<const std::uint32_t> nodes;

  TrieSpans() = default;
  explicit TrieSpans(const View& view) noexcept
      : root(view.root, View::kRootEntries), nodes(view.nodes, view.node_entries) {}

  [[nodiscard]] View view() const noexcept {
    return {root.data(), nodes.data(), static_cast<std::uint32_t>(nodes.size())};
  }
};

/// The arrays of a multibit trie, in a recipe.
template <typename View>
struct TrieRuns {
  RunSpans root;  // of View::kRootEntries
  RunSpans nodes;
};

template <template <typename> typename Trie>
using Trie4Of = std::variant<Trie<Dir24View>, Trie<Trie1View>, Trie<Trie4View>>;  // as Fib4View

template <template <typename> typename Trie>
struct TablesOf {
  Trie4Of<Trie> v4;
  Trie<Fib6View> v6;
  std::span<const Hop> hops;
  std::span<const Neighbour> neighbours;  // slots, see NeighbourView
  std::span<const EgressPort> ports;

  [[nodiscard]] Fib4View v4_view() const noexcept {
    return std::visit([](const auto& trie) { return Fib4View(trie.view()); }, v4);
  }
  [[nodiscard]] ForwardView view() const noexcept {
    return {hops.data(), ports.data(), {neighbours.data(), static_cast<std::uint32_t>(neighbours.size() - 1)}};
  }
  /// As they lie on a device.
  [[nodiscard]] std::size_t bytes() const noexcept {
    const auto entries = [](const auto& trie) { return trie.root.size() + trie.nodes.size(); };
    return (std::visit(entries, v4) + entries(v6)) * sizeof(std::uint32_t) + hops.size_bytes() +
           neighbours.size_bytes() + ports.size_bytes();
  }
};

using Trie4Spans = Trie4Of<TrieSpans>;
using TableSpans = TablesOf<TrieSpans>;
using TableRuns = TablesOf<TrieRuns>;

}  // namespace penstock::router
