// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Full BGP tables for tests and benches, from the corpus at PENSTOCK_CORPUS or beside the project.

#pragma once

#include <optional>
#include <string>
#include <vector>

#include "nf/router/fib_routes.h"

namespace penstock::router {

struct Match4 {
  Ipv4Address address;
  std::uint32_t value = 0;
};
struct Match6 {
  Ipv6Address address;
  std::uint32_t value = 0;
};

/// The routes of a file with lines `PREFIX NUMBER`; empty if there is no corpus. Throws on a line that it cannot parse.
[[nodiscard]] std::vector<Route4> corpus_routes4();
[[nodiscard]] std::vector<Route6> corpus_routes6();
/// Addresses, each with the value of its longest match, or kNoRoute.
[[nodiscard]] std::vector<Match4> corpus_matches4();
[[nodiscard]] std::vector<Match6> corpus_matches6();

}  // namespace penstock::router
