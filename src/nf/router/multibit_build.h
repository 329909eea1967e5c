// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Builds and updates an IPv4 multibit trie. An update rewrites the entries in its prefix's range that are labelled with
// the route it replaces; nodes that hold no longer prefix any more go back to a free list.

#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/error.h"
#include "base/ip_address.h"
#include "nf/router/fib_routes.h"
#include "nf/router/huge_page_allocator.h"
#include "nf/router/multibit_layout.h"
#include "nf/router/rib.h"

namespace penstock::router {

/// The operations and their contracts are Fib4's.
template <unsigned kRootBits, unsigned kStrideBits>
class MultibitTable {
 public:
  using View = MultibitView<kRootBits, kStrideBits>;

  [[nodiscard]] static Result<MultibitTable> build(std::span<const Route4> routes, FibLimit limit = {});
  [[nodiscard]] Result<void> insert(const Route4& route);
  bool erase(const Ipv4Prefix& prefix);

  [[nodiscard]] View view() const noexcept { return {root_.data(), nodes_.data(), node_count()}; }
  [[nodiscard]] std::size_t size() const noexcept { return rib_.size(); }
  [[nodiscard]] std::size_t memory_bytes() const noexcept { return (root_.size() + nodes_.size()) * sizeof(root_[0]); }

 private:
  explicit MultibitTable(FibLimit limit);

  [[nodiscard]] std::uint32_t node_count() const noexcept {
    return static_cast<std::uint32_t>(nodes_.size() >> kStrideBits);
  }
  [[nodiscard]] std::span<std::uint32_t> node(std::uint32_t index) noexcept {
    return std::span(nodes_).subspan(std::size_t{index} << kStrideBits, View::kNodeEntries);
  }
  /// Of the slot for the address in a node that begins at bit `depth`.
  [[nodiscard]] static std::size_t slot_index(std::uint32_t node, Ipv4Address address, unsigned depth) noexcept {
    return std::size_t{node} << kStrideBits | (address.bits >> (32 - depth - kStrideBits) & (View::kNodeEntries - 1));
  }
  [[nodiscard]] std::uint32_t missing_nodes(const Ipv4Prefix& prefix) const noexcept;
  [[nodiscard]] bool reserve_nodes(std::uint32_t count);
  std::uint32_t add_node(std::uint32_t fill) noexcept;
  [[nodiscard]] std::span<std::uint32_t> range(const Ipv4Prefix& prefix) noexcept;
  void relabel(std::span<std::uint32_t> entries, std::uint32_t from, std::uint32_t to) noexcept;
  void fold(Ipv4Address address) noexcept;

  HugeVector<std::uint32_t> root_;
  HugeVector<std::uint32_t> nodes_;
  std::vector<std::uint32_t> free_nodes_;
  Rib<Ipv4Prefix> rib_;
  FibLimit limit_;
};

extern template class MultibitTable<24, 8>;
extern template class MultibitTable<1, 1>;
extern template class MultibitTable<4, 4>;

/// values[i] = lookup(table, addresses[i]), many look-ups in flight at once.
template <unsigned kRootBits, unsigned kStrideBits>
void lookup_bulk(MultibitView<kRootBits, kStrideBits> table, std::span<const Ipv4Address> addresses,
                 std::span<std::uint32_t> values) noexcept;

}  // namespace penstock::router
