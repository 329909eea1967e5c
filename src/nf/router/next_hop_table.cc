// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "nf/router/next_hop_table.h"

#include <algorithm>

#include "packet/flow_hash.h"

namespace penstock::router {

std::uint64_t NextHopTable::hash(RouteKind kind, std::span<const NextHop> hops) noexcept {
  auto sum = static_cast<std::uint64_t>(kind);
  for (const NextHop& hop : hops) {
    sum = mix64(sum ^ hop.gateway.high);
    sum = mix64(sum ^ hop.gateway.low);
    sum = mix64(sum ^ (std::uint64_t{hop.device} << 16 | hop.weight));
  }
  return sum;
}

std::uint32_t NextHopTable::take(std::size_t count) {
  const auto free = free_.find(count);
  if (free != free_.end() && !free->second.empty()) {
    const std::uint32_t first = free->second.back();
    free->second.pop_back();
    return first;
  }
  const auto first = static_cast<std::uint32_t>(hops_.size());
  hops_.resize(hops_.size() + count);
  groups_.resize(hops_.size());
  return first;
}

std::uint32_t NextHopTable::intern(RouteKind kind, std::span<const NextHop> hops) {
  const std::uint64_t key = hash(kind, hops);
  const auto [begin, end] = by_hash_.equal_range(key);
  for (auto it = begin; it != end; ++it) {
    const std::uint32_t group = it->second;
    if (groups_[group].kind == kind && std::ranges::equal(this->hops(group), hops)) return group;
  }
  const std::uint32_t group = take(hops.size());
  std::ranges::copy(hops, hops_.begin() + group);
  groups_[group] = {0, static_cast<std::uint16_t>(hops.size()), kind};
  by_hash_.emplace(key, group);
  return group;
}

void NextHopTable::remove_route(std::uint32_t group) {
  --groups_[group].routes;
  remove_unused(group);
}

void NextHopTable::remove_unused(std::uint32_t group) {
  Group& entry = groups_[group];
  if (entry.routes != 0 || entry.count == 0) return;
  const auto [begin, end] = by_hash_.equal_range(hash(entry.kind, hops(group)));
  by_hash_.erase(std::find_if(begin, end, [&](const auto& item) { return item.second == group; }));
  free_[entry.count].push_back(group);
  entry = {};
}

std::array<std::size_t, kRouteKinds> NextHopTable::routes_by_kind() const noexcept {
  std::array<std::size_t, kRouteKinds> counts{};
  for (const Group& group : groups_) counts[static_cast<std::size_t>(group.kind)] += group.routes;
  return counts;
}

}  // namespace penstock::router
