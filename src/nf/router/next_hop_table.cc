// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "nf/router/next_hop_table.h"

#include <algorithm>
#include <utility>

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

std::optional<std::uint32_t> NextHopTable::find(RouteKind kind, std::span<const NextHop> hops) const noexcept {
  const auto [begin, end] = by_hash_.equal_range(hash(kind, hops));
  for (auto it = begin; it != end; ++it) {
    const std::uint32_t group = it->second;
    if (groups_[group].kind == kind && std::ranges::equal(this->hops(group), hops)) return group;
  }
  return std::nullopt;
}

std::uint32_t NextHopTable::intern(RouteKind kind, std::span<const NextHop> hops) {
  if (const auto group = find(kind, hops)) return *group;
  // Everything that may throw comes first.
  std::uint32_t& free = free_.try_emplace(hops.size(), kNone).first->second;
  const bool taken_again = free != kNone;
  const std::uint32_t group = taken_again ? free : static_cast<std::uint32_t>(hops_.size());
  if (!taken_again) {
    const std::size_t places = hops_.size() + hops.size();
    if (places > hops_.capacity()) hops_.reserve(places + places / 2);
    if (places > groups_.capacity()) groups_.reserve(places + places / 2);
  }
  by_hash_.emplace(hash(kind, hops), group);
  if (taken_again) {
    free = groups_[group].routes;
  } else {
    hops_.resize(hops_.size() + hops.size());
    groups_.resize(hops_.size());
  }
  std::ranges::copy(hops, hops_.begin() + group);
  groups_[group] = {0, static_cast<std::uint16_t>(hops.size()), kind};
  return group;
}

void NextHopTable::add_route(std::uint32_t group) noexcept {
  ++groups_[group].routes;
  ++routes_by_kind_[static_cast<std::size_t>(groups_[group].kind)];
}

void NextHopTable::remove_route(std::uint32_t group) noexcept {
  --groups_[group].routes;
  --routes_by_kind_[static_cast<std::size_t>(groups_[group].kind)];
  remove_unused(group);
}

void NextHopTable::remove_unused(std::uint32_t group) noexcept {
  Group& entry = groups_[group];
  if (entry.count == 0 || entry.routes != 0) return;
  const auto [begin, end] = by_hash_.equal_range(hash(entry.kind, hops(group)));
  by_hash_.erase(std::find_if(begin, end, [&](const auto& item) { return item.second == group; }));
  std::uint32_t& free = free_.find(entry.count)->second;
  entry = {.routes = std::exchange(free, group)};
}

}  // namespace penstock::router
