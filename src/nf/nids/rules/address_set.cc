// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "nf/nids/rules/address_set.h"

#include "nf/nids/rules/ranges.h"

namespace penstock::nids {

AddressSet AddressSet::any() {
  AddressSet set;
  set.v4 = {{ranges::lowest(Ipv4Address{}), ranges::highest(Ipv4Address{})}};
  set.v6 = {{ranges::lowest(Ipv6Address{}), ranges::highest(Ipv6Address{})}};
  return set;
}

bool AddressSet::is_any() const noexcept {
  return v4.size() == 1 && v6.size() == 1 && v4[0].first == ranges::lowest(Ipv4Address{}) &&
         v4[0].last == ranges::highest(Ipv4Address{}) && v6[0].first == ranges::lowest(Ipv6Address{}) &&
         v6[0].last == ranges::highest(Ipv6Address{});
}

}  // namespace penstock::nids
