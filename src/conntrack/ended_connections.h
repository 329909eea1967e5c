// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Copies of connections that a packet has ended while others of them, or that packet itself, may still be on their way
// through the chain, which has to translate them. A new copy may take the place of an older one.

#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "conntrack/connection.h"

namespace penstock::conntrack {

class EndedConnections {
 public:
  /// Keeps up to so many, a power of two. Without this call, none.
  void keep(std::uint32_t most) {
    copies_ = std::make_unique<Copy[]>(most);
    mask_ = most - 1;
  }
  /// A confirmed connection, before its memory is given back.
  void add(std::uint32_t index, const Connection& connection) noexcept {
    if (copies_ != nullptr) copies_[place_of(index, connection.generation)] = {index, connection};
  }
  /// The connection that was in the store's memory `index`; null if it is not kept.
  [[nodiscard]] Connection* find(std::uint32_t index, std::uint32_t generation) noexcept {
    if (copies_ == nullptr) return nullptr;
    Copy& copy = copies_[place_of(index, generation)];
    return copy.index == index && copy.connection.generation == generation ? &copy.connection : nullptr;
  }

 private:
  struct Copy {
    std::uint32_t index = Connection::kNone;
    Connection connection{};
  };
  [[nodiscard]] std::uint32_t place_of(std::uint32_t index, std::uint32_t generation) const noexcept {
    return (index + generation * 31) & mask_;
  }

  std::unique_ptr<Copy[]> copies_;
  std::uint32_t mask_ = 0;
};

}  // namespace penstock::conntrack
