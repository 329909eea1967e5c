// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The next hops of the kernel's routes. Each distinct list is stored once, and counts the routes that use it.

#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "control/kernel/messages.h"
#include "packet/flow_hash.h"

namespace penstock::control {

class PathTable {
 public:
  /// The list's number, with one more use.
  [[nodiscard]] std::uint32_t use(std::span<const KernelHop> hops) {
    const std::uint64_t key = hash(hops);
    const auto [begin, end] = by_hash_.equal_range(key);
    for (auto it = begin; it != end; ++it) {
      Path& path = paths_[it->second];
      if (!std::ranges::equal(path.hops, hops)) continue;
      ++path.uses;
      return it->second;
    }
    if (free_.empty()) {
      free_.push_back(static_cast<std::uint32_t>(paths_.size()));
      paths_.emplace_back();
    }
    const std::uint32_t number = free_.back();
    free_.pop_back();
    by_hash_.emplace(key, number);
    paths_[number] = {1, {hops.begin(), hops.end()}};
    return number;
  }

  /// One use less.
  void release(std::uint32_t number) {
    Path& path = paths_[number];
    if (--path.uses > 0) return;
    const auto [begin, end] = by_hash_.equal_range(hash(path.hops));
    by_hash_.erase(std::find_if(begin, end, [&](const auto& item) { return item.second == number; }));
    path.hops = {};
    free_.push_back(number);
  }

  [[nodiscard]] std::span<const KernelHop> hops(std::uint32_t number) const noexcept { return paths_[number].hops; }

  /// By number: whether the list has a hop through this interface.
  [[nodiscard]] std::vector<bool> through(std::uint32_t interface) const {
    std::vector<bool> found(paths_.size());
    for (std::size_t i = 0; i < paths_.size(); ++i) {
      found[i] = std::ranges::any_of(paths_[i].hops, [&](const KernelHop& hop) { return hop.interface == interface; });
    }
    return found;
  }

 private:
  struct Path {
    std::uint32_t uses = 0;
    std::vector<KernelHop> hops;
  };

  static std::uint64_t hash(std::span<const KernelHop> hops) noexcept {
    std::uint64_t sum = hops.size();
    for (const KernelHop& hop : hops) {
      sum = mix64(sum ^ hop.gateway.high);
      sum = mix64(sum ^ hop.gateway.low);
      sum = mix64(sum ^ (std::uint64_t{hop.interface} << 17 | std::uint64_t{hop.weight} << 1 | hop.encapsulated));
    }
    return sum;
  }

  std::vector<Path> paths_;
  std::vector<std::uint32_t> free_;
  std::unordered_multimap<std::uint64_t, std::uint32_t> by_hash_;
};

}  // namespace penstock::control
