// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The router's tables in host memory, as they are copied to a device: a view of a RouterTables, or of a recipe that
// another process made of one. Borrows everything.

#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <variant>

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

using Trie4Spans = std::variant<TrieSpans<Dir24View>, TrieSpans<Trie1View>, TrieSpans<Trie4View>>;  // as Fib4View

struct TableSpans {
  Trie4Spans v4;
  TrieSpans<Fib6View> v6;
  std::span<const Hop> hops;
  std::span<const Neighbour> neighbours;  // slots, see NeighbourView
  std::span<const EgressPort> ports;

  [[nodiscard]] Fib4View v4_view() const noexcept {
    return std::visit([](const auto& trie) { return Fib4View(trie.view()); }, v4);
  }
  [[nodiscard]] ForwardView view() const noexcept {
    return {hops.data(), ports.data(), {neighbours.data(), static_cast<std::uint32_t>(neighbours.size() - 1)}};
  }
  [[nodiscard]] std::size_t bytes() const noexcept {
    const std::size_t trie4 =
        std::visit([](const auto& trie) { return trie.root.size_bytes() + trie.nodes.size_bytes(); }, v4);
    return trie4 + v6.root.size_bytes() + v6.nodes.size_bytes() + hops.size_bytes() + neighbours.size_bytes() +
           ports.size_bytes();
  }
};

}  // namespace penstock::router
