// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "nf/nids/match/rarity.h"

#include <gtest/gtest.h>

#include "nf/nids/match/literals_for_test.h"

namespace penstock::nids {
namespace {

using testing::Bytes;
using testing::bytes_of;
using testing::literal;

TEST(Rarity, RanksZerosAndBoilerplateAsMoreCommonThanOtherBytes) {
  EXPECT_GT(commonness(Bytes{0, 0, 0, 0}), commonness(Bytes{0x8b, 0x45, 0xfc, 0x50}));
  EXPECT_GT(commonness(bytes_of("HTTP")), commonness(bytes_of("etro")));
  EXPECT_GT(commonness(bytes_of("aaaa")), commonness(bytes_of("abab")));
  EXPECT_EQ(commonness(bytes_of("USER")), commonness(bytes_of("user")));
}

TEST(Rarity, CutsALiteralToItsRarestBytesAndLeavesAShortOneWhole) {
  const std::vector<Literal> literals{literal("GET /zq7xk3wj HTTP/1.1", true), literal("short"), literal("eight by"),
                                      literal(std::string(30, '\0') + "\x8b\x45\xfc\x50")};
  const auto cuts = cut_literals(literals);
  ASSERT_EQ(cuts.size(), literals.size());
  for (std::size_t i = 0; i < cuts.size(); ++i) {
    EXPECT_LE(cuts[i].bytes.size(), kCutLiteralBytes);
    EXPECT_TRUE(testing::occurs({cuts[i].bytes, false}, literals[i].bytes));
    EXPECT_EQ(cuts[i].nocase, literals[i].nocase);
  }
  EXPECT_EQ(cuts[0].bytes, bytes_of("zq7xk3wj"));
  EXPECT_EQ(cuts[1], literals[1]);
  EXPECT_EQ(cuts[2], literals[2]);
  EXPECT_EQ(cuts[3].bytes.back(), 0x50);
}

}  // namespace
}  // namespace penstock::nids
