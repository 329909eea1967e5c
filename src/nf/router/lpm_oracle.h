// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Simple longest prefix match as a reference for tests; it shares no code with the tables. The linear oracle tries
// every route. The other has a map for each length, for tables that are too long for the first.

#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <unordered_map>
#include <vector>

#include "base/ip_address.h"
#include "nf/router/route_entry.h"

namespace penstock::router {

template <typename Prefix>
class LinearOracle {
 public:
  using Address = decltype(Prefix::address);

  void insert(const Prefix& prefix, std::uint32_t value) { routes_[prefix] = value; }
  bool erase(const Prefix& prefix) { return routes_.erase(prefix) > 0; }
  [[nodiscard]] const std::map<Prefix, std::uint32_t>& routes() const { return routes_; }

  [[nodiscard]] std::uint32_t lookup(const Address& address) const {
    int longest = -1;
    std::uint32_t value = kNoRoute;
    for (const auto& [prefix, its_value] : routes_) {
      if (int{prefix.length} > longest && contains(prefix, address)) {
        longest = prefix.length;
        value = its_value;
      }
    }
    return value;
  }

 private:
  std::map<Prefix, std::uint32_t> routes_;
};

template <typename Prefix>
class ByLengthOracle {
 public:
  using Address = decltype(Prefix::address);

  void insert(const Prefix& prefix, std::uint32_t value) { by_length_[prefix.length][prefix.address] = value; }

  [[nodiscard]] std::uint32_t lookup(const Address& address) const {
    for (auto it = by_length_.rbegin(); it != by_length_.rend(); ++it) {
      const auto found = it->second.find(masked(address, it->first));
      if (found != it->second.end()) return found->second;
    }
    return kNoRoute;
  }

 private:
  struct Hash {
    std::size_t operator()(const Ipv4Address& address) const {
      return address.bits * std::size_t{0x9e37'79b9'7f4a'7c15};
    }
    std::size_t operator()(const Ipv6Address& address) const {
      return (address.high + address.low * 31) * std::size_t{0x9e37'79b9'7f4a'7c15};
    }
  };
  static std::uint64_t cut(std::uint64_t bits, unsigned width, unsigned length) {
    if (length == 0) return 0;
    return length >= width ? bits : bits >> (width - length) << (width - length);
  }
  static Ipv4Address masked(Ipv4Address address, unsigned length) {
    return {static_cast<std::uint32_t>(cut(address.bits, 32, length))};
  }
  static Ipv6Address masked(const Ipv6Address& address, unsigned length) {
    return {cut(address.high, 64, length), length <= 64 ? 0 : cut(address.low, 64, length - 64)};
  }

  std::map<unsigned, std::unordered_map<Address, std::uint32_t, Hash>> by_length_;
};

inline Ipv4Address next(Ipv4Address address) { return {address.bits + 1}; }
inline Ipv4Address previous(Ipv4Address address) { return {address.bits - 1}; }
inline Ipv6Address next(const Ipv6Address& address) {
  return {address.high + (address.low == ~std::uint64_t{0} ? 1 : 0), address.low + 1};
}
inline Ipv6Address previous(const Ipv6Address& address) {
  return {address.high - (address.low == 0 ? 1 : 0), address.low - 1};
}
inline Ipv4Address last_of(const Ipv4Prefix& prefix) { return {prefix.address.bits | ~ipv4_mask(prefix.length)}; }
inline Ipv6Address last_of(const Ipv6Prefix& prefix) {
  const Ipv6Address mask = ipv6_mask(prefix.length);
  return {prefix.address.high | ~mask.high, prefix.address.low | ~mask.low};
}

/// The addresses at which lookups are most likely to fail: the first and last of the prefix, and those directly before
/// and after.
template <typename Prefix, typename Address = decltype(Prefix::address)>
void append_edges(std::vector<Address>& addresses, const Prefix& prefix) {
  const Address last = last_of(prefix);
  addresses.insert(addresses.end(), {previous(prefix.address), prefix.address, last, next(last)});
}

}  // namespace penstock::router
