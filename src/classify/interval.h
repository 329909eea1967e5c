// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Sets of numbers, as intervals.

#pragma once

#include <vector>

#include "base/ip_address.h"

namespace penstock::classify {

using Number = Ipv6Address;  // a 128-bit number; smaller ones are in the low word

/// Inclusive.
struct Interval {
  Number low;
  Number high;
  friend bool operator==(const Interval&, const Interval&);
};

/// Ascending, disjoint, not adjacent.
using IntervalSet = std::vector<Interval>;

}  // namespace penstock::classify
