// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "classify/list_pool.h"

#include <algorithm>

namespace penstock::classify {

namespace {

std::uint32_t hash_of(std::span<const std::uint32_t> list) noexcept {
  std::uint64_t hash = list.size();
  for (const std::uint32_t number : list) {
    hash = (hash ^ number) * 0x9e3779b97f4a7c15U;
    hash ^= hash >> 29;
  }
  return static_cast<std::uint32_t>(hash >> 32);
}

}  // namespace

void ListPool::grow() {
  slots_.assign(std::max<std::size_t>(64, slots_.size() * 2), 0);
  const std::size_t mask = slots_.size() - 1;
  for (std::uint32_t id = 0; id < size(); ++id) {
    std::size_t slot = hashes_[id] & mask;
    while (slots_[slot] != 0) slot = (slot + 1) & mask;
    slots_[slot] = id + 1;
  }
}

std::uint32_t ListPool::intern(std::span<const std::uint32_t> list) {
  if (hashes_.size() * 2 >= slots_.size()) grow();
  const std::uint32_t hash = hash_of(list);
  const std::size_t mask = slots_.size() - 1;
  std::size_t slot = hash & mask;
  for (; slots_[slot] != 0; slot = (slot + 1) & mask) {
    const std::uint32_t id = slots_[slot] - 1;
    if (hashes_[id] == hash && std::ranges::equal((*this)[id], list)) return id;
  }
  const std::uint32_t id = size();
  slots_[slot] = id + 1;
  numbers_.insert(numbers_.end(), list.begin(), list.end());
  starts_.push_back(numbers_.size());
  hashes_.push_back(hash);
  return id;
}

}  // namespace penstock::classify
