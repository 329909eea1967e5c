// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The addresses of one side of a rule's header: negations and groups are resolved into sorted ranges that neither
// overlap nor touch.

#pragma once

#include <algorithm>
#include <vector>

#include "base/ip_address.h"

namespace penstock::nids {

class AddressSet {
 public:
  template <typename Address>
  struct Range {
    Address first, last;  // inclusive
    friend bool operator==(const Range&, const Range&) = default;
  };

  /// All addresses.
  [[nodiscard]] static AddressSet any();

  std::vector<Range<Ipv4Address>> v4;
  std::vector<Range<Ipv6Address>> v6;

  [[nodiscard]] bool contains(Ipv4Address address) const noexcept { return found(v4, address); }
  [[nodiscard]] bool contains(const Ipv6Address& address) const noexcept { return found(v6, address); }
  [[nodiscard]] bool is_any() const noexcept;

  friend bool operator==(const AddressSet&, const AddressSet&) = default;

 private:
  template <typename Address>
  [[nodiscard]] static bool found(const std::vector<Range<Address>>& ranges, const Address& address) noexcept {
    const auto after = std::upper_bound(ranges.begin(), ranges.end(), address,
                                        [](const Address& a, const Range<Address>& r) { return a < r.first; });
    return after != ranges.begin() && !(std::prev(after)->last < address);
  }
};

}  // namespace penstock::nids
