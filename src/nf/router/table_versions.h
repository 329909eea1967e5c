// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Versions of the router's tables, so that a copy can be compared with the original. Tables with equal versions are
// equal.

#pragma once

#include <cstdint>

namespace penstock::router {

struct TableVersions {
  std::uint64_t v4 = 1;
  std::uint64_t v6 = 1;
  std::uint64_t hops = 1;
  std::uint64_t neighbours = 1;
  std::uint64_t ports = 1;

  friend constexpr bool operator==(const TableVersions&, const TableVersions&) = default;
};

}  // namespace penstock::router
