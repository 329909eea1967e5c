// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Builds and updates a multibit trie. An update rewrites the entries in its prefix's range that carry the label of the
// route that it replaces. Nodes that no longer contain a prefix return to a free list. Owns the routes, and the arrays
// that its view borrows.

#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <type_traits>
#include <vector>

#include "base/error.h"
#include "base/huge_page_allocator.h"
#include "base/ip_address.h"
#include "nf/router/fib_routes.h"
#include "nf/router/multibit_layout.h"
#include "nf/router/rib.h"

namespace penstock::router {

template <typename ViewT>
class MultibitTable {
 public:
  using View = ViewT;
  using Address = typename View::Address;
  using Route = std::conditional_t<std::is_same_v<Address, Ipv4Address>, Route4, Route6>;
  using Prefix = decltype(Route::prefix);

  /// Of two routes with the same prefix, the later one is used. Errors: a value over kMaxValue, a length over the
  /// address's, host bits set, a table over the limit.
  [[nodiscard]] static Result<MultibitTable> build(std::span<const Route> routes, FibLimit limit = {});

  /// Adds the route, or replaces the value of its prefix. After an error the table is unchanged.
  [[nodiscard]] Result<void> insert(const Route& route);
  /// False if there is no such route. Does not take more memory for lookups.
  bool erase(const Prefix& prefix);

  [[nodiscard]] std::uint32_t lookup(const Address& address) const noexcept;
  /// The same, with the prefix's length, as an entry (route_entry.h).
  [[nodiscard]] std::uint32_t lookup_entry(const Address& address) const noexcept;
  /// The value of the route with exactly this prefix, if there is one.
  [[nodiscard]] std::optional<std::uint32_t> value(const Prefix& prefix) const noexcept { return rib_.value(prefix); }
  /// Calls `use(prefix, value)` for each route, in no particular order.
  template <typename Use>
  void for_each(Use&& use) const {
    rib_.for_each(use);
  }
  /// values[i] is the result for addresses[i]. Many lookups are in flight at once. The spans must have the same length.
  void lookup_bulk(std::span<const Address> addresses, std::span<std::uint32_t> values) const noexcept;

  /// Valid until the next update.
  [[nodiscard]] View view() const noexcept {
    return {root_.data(), nodes_.data(), static_cast<std::uint32_t>(nodes_.size())};
  }
  [[nodiscard]] std::size_t size() const noexcept { return rib_.size(); }  // routes
  /// The memory that lookups use; the stored routes come on top.
  [[nodiscard]] std::size_t memory_bytes() const noexcept { return (root_.size() + nodes_.size()) * sizeof(root_[0]); }

 private:
  explicit MultibitTable(FibLimit limit);

  static constexpr std::size_t kStrides = 17;  // 0 to 16 bits

  [[nodiscard]] static std::size_t level_of(unsigned length) noexcept;
  [[nodiscard]] bool reserve(const Prefix& prefix);
  void add_way(const Prefix& prefix);
  [[nodiscard]] std::span<std::uint32_t> range(const Prefix& prefix) noexcept;
  [[nodiscard]] std::uint32_t add_node(std::size_t level, std::uint32_t fill);
  [[nodiscard]] std::span<std::uint32_t> node(std::uint32_t node, std::size_t level) noexcept;
  void relabel(std::span<std::uint32_t> entries, std::size_t children_level, std::uint32_t from,
               std::uint32_t to) noexcept;
  void fold(const Address& address);

  HugeVector<std::uint32_t> root_;
  HugeVector<std::uint32_t> nodes_;
  std::array<std::vector<std::uint32_t>, kStrides> free_nodes_;  // by stride
  Rib<Prefix> rib_;
  FibLimit limit_;
};

extern template class MultibitTable<Dir24View>;
extern template class MultibitTable<Trie1View>;
extern template class MultibitTable<Trie4View>;
extern template class MultibitTable<Trie6View>;

}  // namespace penstock::router
