// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Copies of connections that a packet has ended while others of them, or that packet itself, may still be on their way
// through the chain, which has to translate them. A new copy may take the place of an older one.

#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>

#include "base/huge_page_allocator.h"
#include "conntrack/connection.h"

namespace penstock::conntrack {

class EndedConnections {
 public:
  /// Keeps up to so many, a power of two. Without this call, none. Memory is only used for those that are kept.
  void keep(std::size_t most) {
    indices_ = std::make_unique<std::uint32_t[]>(most);
    std::fill_n(indices_.get(), most, Connection::kNone);
    copies_ = make_huge_memory<Connection>(most);
    mask_ = most - 1;
  }
  /// A confirmed connection, before its memory is given back.
  void add(std::uint32_t index, const Connection& connection) noexcept {
    if (indices_ == nullptr) return;
    const std::size_t place = place_of(index, connection.generation);
    indices_[place] = index;
    new (&copies_[place]) Connection(connection);
  }
  /// The connection that was in the store's memory `index`; null if it is not kept.
  [[nodiscard]] Connection* find(std::uint32_t index, std::uint32_t generation) noexcept {
    if (indices_ == nullptr) return nullptr;
    const std::size_t place = place_of(index, generation);
    return indices_[place] == index && copies_[place].generation == generation ? &copies_[place] : nullptr;
  }

 private:
  [[nodiscard]] std::size_t place_of(std::uint32_t index, std::uint32_t generation) const noexcept {
    return (index + generation * 31) & mask_;
  }

  std::unique_ptr<std::uint32_t[]> indices_;  // in the store's memory; kNone: none
  HugeMemory<Connection> copies_;
  std::size_t mask_ = 0;
};

}  // namespace penstock::conntrack
