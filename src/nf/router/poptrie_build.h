// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Builds and updates the IPv6 poptrie. A word's children and its leaves lie in blocks of contiguous places; a block
// that outgrows its size class moves to a larger one and its place is kept for the next of its size.

#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/error.h"
#include "base/ip_address.h"
#include "nf/router/block_pool.h"
#include "nf/router/fib_routes.h"
#include "nf/router/huge_page_allocator.h"
#include "nf/router/poptrie_layout.h"
#include "nf/router/rib.h"

namespace penstock::router {

/// The operations and their contracts are Fib4's.
class PoptrieTable {
 public:
  [[nodiscard]] static Result<PoptrieTable> build(std::span<const Route6> routes, FibLimit limit = {});
  [[nodiscard]] Result<void> insert(const Route6& route);
  bool erase(const Ipv6Prefix& prefix);

  [[nodiscard]] std::uint32_t lookup(const Ipv6Address& address) const noexcept;
  void lookup_bulk(std::span<const Ipv6Address> addresses, std::span<std::uint32_t> values) const noexcept;

  [[nodiscard]] PoptrieView view() const noexcept;  // valid until the next update
  [[nodiscard]] std::size_t size() const noexcept { return rib_.size(); }
  [[nodiscard]] std::size_t memory_bytes() const noexcept;

 private:
  using Leaves = std::array<std::uint32_t, 64>;  // of a word's slots

  explicit PoptrieTable(FibLimit limit);
  void build_node(std::uint32_t node, unsigned depth, std::span<const Route6> routes, std::uint32_t inherited);
  void reserve_update();
  void relabel(const Ipv6Prefix& prefix, std::uint32_t from, std::uint32_t to);
  void relabel_word(PoptrieWord& word, unsigned begin, unsigned end, std::uint32_t from, std::uint32_t to);
  void relabel_node(std::uint32_t node, std::uint32_t from, std::uint32_t to);
  void fold(const Ipv6Address& address);
  [[nodiscard]] static unsigned depth_of(std::size_t level) noexcept;  // the bit where a node below the root begins
  void fill_node(std::uint32_t node, std::uint32_t label);
  void add_child(PoptrieWord& word, unsigned slot);
  void remove_child(PoptrieWord& word, unsigned slot, std::uint32_t label);
  [[nodiscard]] Leaves load_leaves(const PoptrieWord& word) const noexcept;
  void store_leaves(PoptrieWord& word, const Leaves& leaves);

  HugeVector<std::uint32_t> root_;
  BlockPool<PoptrieNode> nodes_;
  BlockPool<std::uint32_t> leaves_;
  Rib<Ipv6Prefix> rib_;
  FibLimit limit_;
};

}  // namespace penstock::router
