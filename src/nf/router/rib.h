// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The routes of a table, stored so that an update can find the route that covers a prefix: a hash table of entries
// (route_entry.h) by prefix, with open addressing. Removing a route moves later entries back instead of leaving
// tombstones.

#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/huge_page_allocator.h"
#include "base/ip_address.h"
#include "nf/router/route_entry.h"

namespace penstock::router {

constexpr Ipv4Prefix truncated(const Ipv4Prefix& prefix, unsigned length) noexcept {
  return {{prefix.address.bits & ipv4_mask(length)}, static_cast<std::uint8_t>(length)};
}
constexpr Ipv6Prefix truncated(const Ipv6Prefix& prefix, unsigned length) noexcept {
  const Ipv6Address mask = ipv6_mask(length);
  return {{prefix.address.high & mask.high, prefix.address.low & mask.low}, static_cast<std::uint8_t>(length)};
}

template <typename Prefix>
class Rib {
 public:
  [[nodiscard]] std::size_t size() const noexcept { return size_; }

  /// After this, assign() adds routes up to a total of `routes` without allocating.
  void reserve(std::size_t routes) {
    const std::size_t slots = std::bit_ceil(routes + routes / 2 + kSmallest);
    if (slots <= slots_.size()) return;
    HugeVector<Slot> old(slots);
    old.swap(slots_);
    for (const Slot& slot : old) {
      if (slot.entry != kEmpty) slots_[place_of(slot.address, slot.entry)] = slot;
    }
  }

  /// Adds the route or replaces its value.
  void assign(const Prefix& prefix, std::uint32_t value) {
    reserve(size_ + 1);
    const std::uint32_t entry = route_entry(prefix.length, value);
    Slot& slot = slots_[place_of(prefix.address, entry)];
    if (slot.entry == kEmpty) {
      ++size_;
      ++count_by_length_[prefix.length];
    }
    slot = {prefix.address, entry};
  }

  /// The route must be there.
  void erase(const Prefix& prefix) noexcept {
    std::size_t hole = place_of(prefix.address, route_entry(prefix.length, 0));
    --size_;
    --count_by_length_[prefix.length];
    const std::size_t mask = slots_.size() - 1;
    for (std::size_t next = (hole + 1) & mask; slots_[next].entry != kEmpty; next = (next + 1) & mask) {
      const std::size_t home = hash(slots_[next].address, slots_[next].entry) & mask;
      if (((next - home) & mask) < ((next - hole) & mask)) continue;  // lies between its home and the hole's successor
      slots_[hole] = slots_[next];
      hole = next;
    }
    slots_[hole].entry = kEmpty;
  }

  [[nodiscard]] bool contains(const Prefix& prefix) const noexcept { return find(prefix) != kEmpty; }
  /// The value of the route with exactly this prefix.
  [[nodiscard]] std::optional<std::uint32_t> value(const Prefix& prefix) const noexcept {
    const std::uint32_t entry = find(prefix);
    return entry == kEmpty ? std::nullopt : std::optional(entry_value(entry));
  }

  /// Calls `use(prefix, value)` for each route, in no particular order.
  template <typename Use>
  void for_each(Use&& use) const {
    for (const Slot& slot : slots_) {
      if (slot.entry == kEmpty) continue;
      use(Prefix{slot.address, static_cast<std::uint8_t>(entry_length(slot.entry))}, entry_value(slot.entry));
    }
  }

  /// The entry of the longest route of at most `length` bits that contains the prefix's address, or kNoRouteEntry.
  [[nodiscard]] std::uint32_t match(const Prefix& prefix, unsigned length) const noexcept {
    for (unsigned n = length + 1; n-- > 0;) {
      if (count_by_length_[n] == 0) continue;
      const std::uint32_t entry = find(truncated(prefix, n));
      if (entry != kEmpty) return entry;
    }
    return kNoRouteEntry;
  }
  /// The same among routes shorter than the prefix.
  [[nodiscard]] std::uint32_t covering(const Prefix& prefix) const noexcept {
    return prefix.length == 0 ? kNoRouteEntry : match(prefix, prefix.length - 1u);
  }

 private:
  using Address = decltype(Prefix::address);
  static constexpr std::uint32_t kEmpty = ~std::uint32_t{0};  // no route has such a length
  static constexpr std::size_t kSmallest = 15;
  static constexpr unsigned kLengths = sizeof(Address) * 8 + 1;

  struct Slot {
    Address address;
    std::uint32_t entry = kEmpty;
  };

  static std::uint64_t words(const Ipv4Address& address) noexcept { return address.bits; }
  static std::uint64_t words(const Ipv6Address& address) noexcept {
    return address.high ^ std::rotl(address.low * 0x9e37'79b9'7f4a'7c15, 32);
  }
  static std::size_t hash(const Address& address, std::uint32_t entry) noexcept {
    const std::uint64_t mixed = (words(address) ^ std::uint64_t{entry_length(entry)} << 56) * 0xff51'afd7'ed55'8ccd;
    return (mixed ^ mixed >> 32) * 0xc4ce'b9fe'1a85'ec53 >> 20;
  }

  /// The prefix's slot, or the empty slot where it belongs.
  [[nodiscard]] std::size_t place_of(const Address& address, std::uint32_t entry) const noexcept {
    const std::size_t mask = slots_.size() - 1;
    std::size_t place = hash(address, entry) & mask;
    while (slots_[place].entry != kEmpty &&
           (slots_[place].address != address || entry_length(slots_[place].entry) != entry_length(entry))) {
      place = (place + 1) & mask;
    }
    return place;
  }

  [[nodiscard]] std::uint32_t find(const Prefix& prefix) const noexcept {
    return slots_.empty() ? kEmpty : slots_[place_of(prefix.address, route_entry(prefix.length, 0))].entry;
  }

  HugeVector<Slot> slots_;  // empty or a power of two, at most two thirds full
  std::size_t size_ = 0;
  std::array<std::uint32_t, kLengths> count_by_length_{};
};

}  // namespace penstock::router
