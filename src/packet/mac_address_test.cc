// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "packet/mac_address.h"

#include <gtest/gtest.h>

namespace penstock {
namespace {

TEST(MacAddress, IsATextAndANumber) {
  const auto mac = parse_mac("02:00:5e:aB:00:ff");
  ASSERT_TRUE(mac);
  EXPECT_EQ(to_string(*mac), "02:00:5e:ab:00:ff");
  EXPECT_EQ(to_number(*mac), 0x0200'5eab'00ffU);
}

TEST(MacAddress, HasSixBytesOfTwoDigits) {
  for (const char* const text : {"", "02:00:5e:ab:00", "02:00:5e:ab:00:ff:01", "2:0:5e:ab:0:ff", "02-00-5e-ab-00-ff",
                                 "02:00:5e:ab:00:fg", "02:00:5e:ab:00:-f", "02:00:5e:ab:00:f ", "0x:00:5e:ab:00:ff"})
    EXPECT_FALSE(parse_mac(text)) << text;
}

}  // namespace
}  // namespace penstock
