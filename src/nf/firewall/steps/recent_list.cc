// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "nf/firewall/steps/recent_list.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <list>
#include <map>
#include <mutex>
#include <new>
#include <utility>

namespace penstock::firewall {

struct RecentList::Entries {
  using Key = std::pair<NetworkLayer, classify::Number>;
  struct Entry {
    std::array<std::uint64_t, kMostHits + 1> times;
    std::size_t next = 0;   // index in `times`
    std::size_t count = 0;  // of valid ones
    std::uint8_t hop_limit = 0;
    std::list<Key>::iterator place;  // in `order`
  };

  [[nodiscard]] bool holds(const classify::Recent& match, const Key& key, std::uint8_t hop_limit, std::uint64_t now_ns);
  void add(const Key& key, std::uint8_t hop_limit, std::uint64_t now_ns);
  void note(Entry& entry, std::uint8_t hop_limit, std::uint64_t now_ns) noexcept;
  void clear() noexcept {
    by_address.clear();
    order.clear();
  }

  std::mutex mutex;
  std::map<Key, Entry> by_address;
  std::list<Key> order;  // by the last packet, the oldest first
};

RecentList::RecentList() : entries_(std::make_unique<Entries>()) {}
RecentList::~RecentList() = default;

std::optional<bool> RecentList::holds(const classify::Recent& match, const classify::Number& address,
                                      NetworkLayer family, std::uint8_t hop_limit, std::uint64_t now_ns) noexcept {
  const std::lock_guard lock(entries_->mutex);
  try {
    return entries_->holds(match, {family, address}, hop_limit, now_ns);
  } catch (const std::bad_alloc&) {
    return std::nullopt;
  }
}

void RecentList::clear() noexcept {
  const std::lock_guard lock(entries_->mutex);
  entries_->clear();
}

/// As recent_mt() of the kernel. Throws std::bad_alloc, and has no half of an entry then.
bool RecentList::Entries::holds(const classify::Recent& match, const Key& key, std::uint8_t hop_limit,
                                std::uint64_t now_ns) {
  using Way = classify::Recent::Way;
  auto found = by_address.find(key);
  if (found != by_address.end() && match.same_hop_limit && found->second.hop_limit != hop_limit)
    found = by_address.end();
  if (found == by_address.end()) {
    if (match.way != Way::set) return match.negated;
    add(key, hop_limit, now_ns);
    return !match.negated;
  }
  Entry& entry = found->second;
  if (match.way == Way::remove) {
    order.erase(entry.place);
    by_address.erase(found);
    return !match.negated;
  }
  bool holds = true;
  if (match.way != Way::set) {
    const std::uint64_t since_ns = match.within_ns < now_ns ? now_ns - match.within_ns : 0;
    const auto end = entry.times.begin() + static_cast<std::ptrdiff_t>(entry.count);
    const auto hits = std::count_if(entry.times.begin(), end,
                                    [&](std::uint64_t time) { return match.within_ns == 0 || time >= since_ns; });
    holds = static_cast<std::uint32_t>(hits) >= std::max(match.hits, 1U);
  }
  const bool result = holds != match.negated;
  if (match.way == Way::set || (match.way == Way::update && result)) note(entry, hop_limit, now_ns);
  return result;
}

void RecentList::Entries::add(const Key& key, std::uint8_t hop_limit, std::uint64_t now_ns) {
  if (const auto other = by_address.find(key); other != by_address.end()) {  // with another TTL
    order.erase(other->second.place);
    by_address.erase(other);
  }
  if (by_address.size() == kMostAddresses) {
    by_address.erase(order.front());
    order.pop_front();
  }
  order.push_back(key);
  try {
    Entry& entry = by_address[key];
    entry.place = std::prev(order.end());
    note(entry, hop_limit, now_ns);
  } catch (...) {
    order.pop_back();
    throw;
  }
}

void RecentList::Entries::note(Entry& entry, std::uint8_t hop_limit, std::uint64_t now_ns) noexcept {
  entry.times[entry.next] = now_ns;
  entry.next = (entry.next + 1) % entry.times.size();
  entry.count = std::min(entry.count + 1, entry.times.size());
  entry.hop_limit = hop_limit;
  order.splice(order.end(), order, entry.place);
}

}  // namespace penstock::firewall
