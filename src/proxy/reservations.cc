// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "proxy/reservations.h"

#include <algorithm>

namespace penstock::proxy {

namespace {

/// Loads vary, and so do measurements.
constexpr double kHeadroom = 1.25;

double wish_of(const Claim& claim) { return std::min(1.0, claim.needed * kHeadroom); }

/// Divides what is free among those that still want some, by their profiles. Each round satisfies one, or leaves
/// nothing.
template <typename Wanted>
void divide(std::span<Claim> claims, double& free, Wanted wanted) {
  for (std::size_t round = 0; round < claims.size() && free > 0; ++round) {
    double parts = 0;
    for (const Claim& claim : claims) parts += wanted(claim) > 0 ? claim.part : 0;
    if (parts <= 0) return;
    const double for_each = free / parts;
    for (Claim& claim : claims) {
      const double more = std::min(wanted(claim), for_each * claim.part);
      if (more <= 0) continue;
      claim.share += more;
      free -= more;
    }
  }
}

}  // namespace

void choose_reservations(std::span<Claim> claims) noexcept {
  double free = 1;
  for (Claim& claim : claims) {
    claim.share = std::min(wish_of(claim), claim.part);
    free -= claim.needed > 0 ? claim.share : claim.part;
  }
  divide(claims, free, [](const Claim& claim) { return wish_of(claim) - claim.share; });
  divide(claims, free, [](const Claim& claim) { return claim.needed > 0 ? 1 - claim.share : 0; });
}

}  // namespace penstock::proxy
