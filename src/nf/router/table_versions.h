// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Which of the router's tables have changed: whoever copies them elsewhere asks whether it has them already. Equal
// tables have equal versions.

#pragma once

#include <cstdint>

namespace penstock::router {

struct TableVersions {
  std::uint64_t v4 = 1;
  std::uint64_t v6 = 1;
  std::uint64_t hops = 1;
  std::uint64_t neighbours = 1;

  friend constexpr bool operator==(const TableVersions&, const TableVersions&) = default;
};

}  // namespace penstock::router
