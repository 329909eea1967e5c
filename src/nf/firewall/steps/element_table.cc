// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "nf/firewall/steps/element_table.h"

#include <algorithm>
#include <bit>
#include <new>
#include <utility>

#include "base/keyed_hash.h"

namespace penstock::firewall {

namespace {

bool is_over(const ElementTable::Element& element, std::uint64_t now_ns) noexcept {
  return element.expires_ns != 0 && element.expires_ns <= now_ns;
}

/// Saturates: no rule has a real use for more.
std::uint64_t product_over(std::uint64_t a, std::uint64_t b, std::uint64_t divisor) noexcept {
  __extension__ using Product = unsigned __int128;
  const Product quotient = static_cast<Product>(a) * b / divisor;
  return quotient > ~std::uint64_t{0} >> 1 ? ~std::uint64_t{0} >> 1 : static_cast<std::uint64_t>(quotient);
}

}  // namespace

TokenBucket TokenBucket::full(const classify::Rate& rate, std::uint64_t now_ns) noexcept {
  // As nft_limit: for bytes, the burst comes on top of what the rate allows in its unit of time.
  const std::uint64_t most = rate.bytes ? product_over(rate.per_ns, rate.amount + rate.burst, rate.amount)
                                        : product_over(rate.per_ns / rate.amount, rate.burst, 1);
  return {most, now_ns};
}

bool TokenBucket::take(const classify::Rate& rate, std::uint64_t bytes, std::uint64_t now_ns) noexcept {
  const std::uint64_t most = full(rate, 0).tokens_ns;
  const std::uint64_t cost = rate.bytes ? product_over(rate.per_ns, bytes, rate.amount) : rate.per_ns / rate.amount;
  // Time may go back a little between workers.
  const std::uint64_t passed = now_ns > last_ns ? now_ns - last_ns : 0;
  tokens_ns = std::min(most, passed > most ? most : tokens_ns + passed);
  last_ns = std::max(last_ns, now_ns);
  if (tokens_ns < cost) return rate.over;
  tokens_ns -= cost;
  return !rate.over;
}

ElementTable::ElementTable(std::uint32_t size) : size_(std::min(size, kMostElements)), seed_(random_seed()) {
  // A part has twice the room of its share, and some more, since shares vary.
  const std::size_t room = std::bit_ceil(std::min<std::size_t>(std::size_t{size_} * 2 + 1, size_ / kParts * 2 + 256));
  for (Part& part : parts_) {
    part.elements.reset(zeros(room));
    if (part.elements == nullptr) throw std::bad_alloc();
    part.mask = room - 1;
  }
}

/// The system gives the pages once they are used.
ElementTable::Element* ElementTable::zeros(std::size_t count) noexcept {
  return static_cast<Element*>(std::calloc(count, sizeof(Element)));
}

ElementTable::~ElementTable() {
  for (Part& part : parts_) delete_connections(part);
}

void ElementTable::delete_connections(Part& part) noexcept {
  for (std::size_t i = 0; part.has_connections && i <= part.mask; ++i) delete part.elements[i].connections;
  part.has_connections = false;
}

void ElementTable::clear() noexcept {
  for (Part& part : parts_) {
    const std::lock_guard lock(part.mutex);
    part.swept_ns = 0;
    if (part.count == 0) continue;
    delete_connections(part);
    count_.fetch_sub(std::exchange(part.count, 0), std::memory_order_relaxed);
    // Most parts have few elements for their room: other memory costs less than to write all of it.
    if (Element* const others = zeros(part.mask + 1)) {
      part.elements.reset(others);
    } else {
      std::fill_n(part.elements.get(), part.mask + 1, Element{});
    }
  }
}

std::uint64_t ElementTable::hash_of(const Key& key) const noexcept {
  std::uint64_t hash = seed_;
  for (const classify::Number& value : key) hash = mix_product(hash ^ value.low, hash + value.high);
  return mix_product(hash, seed_);
}

ElementTable::Element* ElementTable::find(Part& part, const Key& key) const noexcept {
  for (std::size_t i = home_of(part, key);; i = (i + 1) & part.mask) {
    Element& element = part.elements[i];
    if (!element.used) return nullptr;
    if (element.key == key) return &element;
  }
}

bool ElementTable::contains(const Key& key, std::uint64_t now_ns) noexcept {
  Part& part = part_of(key);
  const std::lock_guard lock(part.mutex);
  const Element* const element = find(part, key);
  return element != nullptr && !is_over(*element, now_ns);
}

void ElementTable::remove(const Key& key) noexcept {
  Part& part = part_of(key);
  const std::lock_guard lock(part.mutex);
  if (Element* const element = find(part, key)) erase(part, *element);
}

ElementTable::Element* ElementTable::enter(Part& part, const Key& key, std::uint64_t now_ns, std::uint64_t expires_ns,
                                           bool refresh, conntrack::Connections* connections) noexcept {
  Element* element = find(part, key);
  if (element != nullptr && is_over(*element, now_ns)) {
    erase(part, *element);
    element = nullptr;
  }
  if (element != nullptr) {
    if (refresh) element->expires_ns = expires_ns;
    return element;
  }
  const auto has_room = [&] {
    // One place stays free, where every search ends.
    return count_.load(std::memory_order_relaxed) < size_ && part.count < part.mask;
  };
  if (!has_room()) {
    sweep(part, now_ns, connections);
    for (Part& other : parts_) {
      if (has_room() || &other == &part || !other.mutex.try_lock()) continue;
      sweep(other, now_ns, connections);
      other.mutex.unlock();
    }
    if (!has_room()) return nullptr;
  }
  std::size_t i = home_of(part, key);
  while (part.elements[i].used) i = (i + 1) & part.mask;
  Element& added = part.elements[i];
  added = {};
  added.key = key;
  added.expires_ns = expires_ns;
  added.used = added.is_new = true;
  ++part.count;
  count_.fetch_add(1, std::memory_order_relaxed);
  return &added;
}

/// Moves later elements of the same run back, so that searches need no marks for deleted elements (Knuth, TAOCP 6.4,
/// algorithm R).
void ElementTable::erase(Part& part, Element& element) noexcept {
  delete element.connections;
  auto hole = static_cast<std::size_t>(&element - part.elements.get());
  for (std::size_t i = (hole + 1) & part.mask; part.elements[i].used; i = (i + 1) & part.mask) {
    const std::size_t from_home = (i - home_of(part, part.elements[i].key)) & part.mask;
    if (from_home < ((i - hole) & part.mask)) continue;
    part.elements[hole] = part.elements[i];
    hole = i;
  }
  part.elements[hole] = {};
  --part.count;
  count_.fetch_sub(1, std::memory_order_relaxed);
}

/// Removes elements whose time is over; not too often, since it reads the whole part.
void ElementTable::sweep(Part& part, std::uint64_t now_ns, conntrack::Connections* connections) noexcept {
  if (part.swept_ns != 0 && now_ns >= part.swept_ns && now_ns - part.swept_ns < kSweepEveryNs) return;
  part.swept_ns = now_ns;
  const auto is_unused = [&](Element& element) {
    if (is_over(element, now_ns)) return true;
    if (connections == nullptr || element.connections == nullptr) return false;
    return element.connections->is_over(*connections);
  };
  for (std::size_t i = 0; i <= part.mask; ++i) {
    while (part.elements[i].used && is_unused(part.elements[i])) erase(part, part.elements[i]);
  }
}

}  // namespace penstock::firewall
