// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "nf/router/fib_routes.h"

#include <algorithm>
#include <string>

#include "base/units.h"
#include "nf/router/rib.h"

namespace penstock::router {
namespace {

constexpr std::size_t kMostErrors = 100;

template <typename Route>
Result<void> check_route(const Route& route) {
  constexpr unsigned kBits = sizeof(route.prefix.address) * 8;
  if (route.prefix.length > kBits) {
    return failure(
        {{}, "prefix length out of range", std::to_string(route.prefix.length), "at most " + std::to_string(kBits)});
  }
  if (truncated(route.prefix, route.prefix.length) != route.prefix) {
    return failure({{}, "prefix has host bits set", to_string(route.prefix), ""});
  }
  if (route.value > kMaxValue) {
    return failure(
        {{}, "route value out of range", std::to_string(route.value), "at most " + std::to_string(kMaxValue)});
  }
  return {};
}

template <typename Route>
Result<std::vector<Route>> sorted(std::span<const Route> routes) {
  Errors errors;
  for (const Route& route : routes) {
    if (auto checked = check_route(route); !checked && errors.size() <= kMostErrors) {
      append(errors, std::move(checked.error()));
    }
  }
  if (errors.size() > kMostErrors) errors.back() = {{}, "… and more", "", ""};
  if (!errors.empty()) return failure(std::move(errors));

  std::vector<Route> result(routes.begin(), routes.end());
  const auto before = [](const Route& a, const Route& b) { return a.prefix < b.prefix; };
  if (!std::is_sorted(result.begin(), result.end(), before)) std::stable_sort(result.begin(), result.end(), before);
  std::size_t kept = 0;
  for (const Route& route : result) {
    if (kept > 0 && result[kept - 1].prefix == route.prefix) --kept;
    result[kept++] = route;
  }
  result.resize(kept);
  return result;
}

}  // namespace

Result<void> check(const Route4& route) { return check_route(route); }
Result<void> check(const Route6& route) { return check_route(route); }

Result<std::vector<Route4>> sorted_routes(std::span<const Route4> routes) { return sorted(routes); }
Result<std::vector<Route6>> sorted_routes(std::span<const Route6> routes) { return sorted(routes); }

tl::unexpected<Errors> table_full(FibLimit limit) {
  return failure({{},
                  "the routing table is full",
                  "more than " + format_size(limit.bytes),
                  "fewer routes; IPv4 routes need less memory with `ipv4: trie4`"});
}

}  // namespace penstock::router
