// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The routes that a table is built from: prefixes with values of the caller, checked and in the order that builders
// need.

#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/error.h"
#include "base/ip_address.h"

namespace penstock::router {

struct Route4 {
  Ipv4Prefix prefix;
  std::uint32_t value = 0;  // at most kMaxValue
};

struct Route6 {
  Ipv6Prefix prefix;
  std::uint32_t value = 0;
};

/// The most bytes that a table may take for lookups, for example the memory of a device.
struct FibLimit {
  std::size_t bytes = std::size_t{4} << 30;
};

/// An error if the value or the length is out of range, or if host bits are set.
[[nodiscard]] Result<void> check(const Route4& route);
[[nodiscard]] Result<void> check(const Route6& route);

/// Checks all routes and sorts them by address, then length, so that a prefix comes before those nested in it. Of
/// routes with the same prefix, only the last is kept.
[[nodiscard]] Result<std::vector<Route4>> sorted_routes(std::span<const Route4> routes);
[[nodiscard]] Result<std::vector<Route6>> sorted_routes(std::span<const Route6> routes);

[[nodiscard]] tl::unexpected<Errors> table_full(FibLimit limit);

}  // namespace penstock::router
