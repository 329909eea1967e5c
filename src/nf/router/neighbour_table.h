// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The MAC addresses of neighbours, shared by host and device: a hash table by device and address with open addressing.
// The table owns its slots. Removing an entry moves later ones back instead of leaving tombstones.

#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "base/host_device.h"
#include "base/ip_address.h"
#include "packet/ethernet.h"
#include "packet/flow_hash.h"
#include "packet/verdict.h"

namespace penstock::router {

struct Neighbour {
  Ipv6Address address;  // IPv4 as `mapped`, see next_hop.h
  PortIndex device = kNoPort;
  MacAddress mac{};
};

/// Addresses, as in Neighbour, and devices.
using NeighbourKeys = std::vector<std::pair<Ipv6Address, PortIndex>>;

/// Borrows the slots, on the host or as a copy on the device.
struct NeighbourView {
  const Neighbour* slots = nullptr;  // a power of two, at most half full; an empty slot's device is kNoPort
  std::uint32_t mask = 0;

  [[nodiscard]] PENSTOCK_HOST_DEVICE static constexpr std::uint32_t hash(const Ipv6Address& address,
                                                                         PortIndex device) noexcept {
    return static_cast<std::uint32_t>(mix64(mix64(address.high + device) + address.low));
  }

  /// The neighbour's slot, or the empty slot where it would be inserted.
  [[nodiscard]] PENSTOCK_HOST_DEVICE constexpr std::uint32_t place(const Ipv6Address& address,
                                                                   PortIndex device) const noexcept {
    std::uint32_t at = hash(address, device) & mask;
    while (slots[at].device != kNoPort && !(slots[at].device == device && slots[at].address.low == address.low &&
                                            slots[at].address.high == address.high)) {
      at = (at + 1) & mask;
    }
    return at;
  }

  /// Null if there is no such neighbour.
  [[nodiscard]] PENSTOCK_HOST_DEVICE constexpr const MacAddress* find(const Ipv6Address& address,
                                                                      PortIndex device) const noexcept {
    const Neighbour& slot = slots[place(address, device)];
    return slot.device == kNoPort ? nullptr : &slot.mac;
  }
};

class NeighbourTable {
 public:
  NeighbourTable() : slots_(kSmallest) {}

  /// Adds the neighbour, or updates its MAC.
  void assign(const Neighbour& neighbour);
  /// False if there is no such neighbour.
  bool erase(const Ipv6Address& address, PortIndex device) noexcept;

  [[nodiscard]] NeighbourView view() const noexcept {  // valid until the next change
    return {slots_.data(), static_cast<std::uint32_t>(slots_.size() - 1)};
  }
  void clear() noexcept {
    std::ranges::fill(slots_, Neighbour{});
    size_ = 0;
  }
  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  [[nodiscard]] std::size_t memory_bytes() const noexcept { return slots_.size() * sizeof(Neighbour); }

 private:
  static constexpr std::size_t kSmallest = 16;
  std::vector<Neighbour> slots_;
  std::size_t size_ = 0;
};

}  // namespace penstock::router
