// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Lists of numbers, each stored once. A list's identifier counts from 0, in the order of first appearance.

#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace penstock::classify {

class ListPool {
 public:
  /// The identifier of `list`, which is added if it is new.
  std::uint32_t intern(std::span<const std::uint32_t> list);
  /// Valid until the next list is added.
  [[nodiscard]] std::span<const std::uint32_t> operator[](std::uint32_t id) const noexcept {
    return std::span(numbers_).subspan(starts_[id], starts_[id + 1] - starts_[id]);
  }
  [[nodiscard]] std::uint32_t size() const noexcept { return static_cast<std::uint32_t>(hashes_.size()); }
  [[nodiscard]] std::size_t memory_bytes() const noexcept {
    return numbers_.size() * sizeof(std::uint32_t) + hashes_.size() * (sizeof(std::size_t) + sizeof(std::uint32_t)) +
           slots_.size() * sizeof(std::uint32_t);
  }

 private:
  void grow();

  std::vector<std::uint32_t> numbers_;
  std::vector<std::size_t> starts_{0};
  std::vector<std::uint32_t> hashes_;
  std::vector<std::uint32_t> slots_;  // a hash table: identifier + 1, or 0
};

}  // namespace penstock::classify
