// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "proxy/reservations.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <limits>
#include <vector>

namespace penstock::proxy {
namespace {

constexpr double kSixteenth = 1.0 / 16;
constexpr double kNever = std::numeric_limits<double>::infinity();

std::vector<Claim> chosen(std::vector<Claim> claims) {
  choose_reservations(claims);
  return claims;
}

TEST(Reservations, GiveATenantWhatOthersLeave) {
  const auto claims = chosen({{kSixteenth, 0.3}, {8 * kSixteenth, 0}});
  EXPECT_NEAR(claims[0].share, 0.5, 1e-9);
  EXPECT_TRUE(claims[0].holds());
  EXPECT_EQ(claims[1].share, 0) << "it has no bound";
}

TEST(Reservations, TakeNothingThatAnotherProfileHas) {
  const auto claims = chosen({{kSixteenth, 0.9}, {12 * kSixteenth, 0}});
  EXPECT_NEAR(claims[0].share, 4 * kSixteenth, 1e-9);
  EXPECT_FALSE(claims[0].holds());
}

TEST(Reservations, DivideByProfileWhatIsNotEnoughForAll) {
  const auto claims = chosen({{1 * kSixteenth, kNever}, {3 * kSixteenth, kNever}, {4 * kSixteenth, 0}});
  EXPECT_NEAR(claims[0].share, 3 * kSixteenth, 1e-9);
  EXPECT_NEAR(claims[1].share, 9 * kSixteenth, 1e-9);
  EXPECT_FALSE(claims[0].holds());
}

TEST(Reservations, GiveWhatATenantDoesNotNeedToOneThatDoes) {
  const auto claims = chosen({{8 * kSixteenth, 0.08}, {8 * kSixteenth, 0.7}});
  EXPECT_GE(claims[0].share, 0.1 - 1e-9);
  EXPECT_TRUE(claims[0].holds());
  EXPECT_TRUE(claims[1].holds());
}

RC_GTEST_PROP(ReservationsOfAny, AreNoMoreThanTheDeviceAndNoLessThanTheProfile, ()) {
  std::vector<Claim> claims;
  double parts = 0;
  while (parts < 1 && *rc::gen::inRange(0, 8) != 0) {
    const double part = *rc::gen::element(1, 2, 4, 8) * kSixteenth;
    if (parts + part > 1) break;
    parts += part;
    claims.push_back({part, *rc::gen::element(0.0, 0.01, 0.05, 0.2, 0.6, 1.5, kNever)});
  }
  choose_reservations(claims);
  double taken = 0, needed = 0;
  for (const Claim& claim : claims) {
    taken += claim.needed > 0 ? claim.share : claim.part;
    needed += claim.needed > 0 ? claim.needed : claim.part;
    RC_ASSERT(claim.share >= std::min(claim.part, claim.needed) - 1e-9);
    RC_ASSERT((claim.needed > 0) == (claim.share > 0));
  }
  RC_ASSERT(taken <= 1 + 1e-9);
  if (needed <= 0.75) RC_ASSERT(std::ranges::all_of(claims, &Claim::holds));
}

}  // namespace
}  // namespace penstock::proxy
