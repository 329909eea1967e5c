// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "nf/firewall/tuple_reader.h"

#include <gmock/gmock.h>

namespace penstock::firewall {
namespace {

using ::testing::HasSubstr;

TEST(TupleReader, ReadsBothFamiliesAndProtocolNames) {
  const auto keys = read_tuples("10.0.0.1 10.0.0.2 TCP 1024 80\n# comment\n\n2001:db8::1\t::  17 0 65535\n", "stdin");
  ASSERT_TRUE(keys);
  ASSERT_EQ(keys->size(), 2U);
  EXPECT_EQ((*keys)[0].family, NetworkLayer::ipv4);
  EXPECT_EQ((*keys)[0].source.low, 0x0a000001U);
  EXPECT_EQ((*keys)[0].protocol(), 6U);
  EXPECT_EQ((*keys)[0].destination_port, 80U);
  EXPECT_TRUE((*keys)[0].is_any_detail());
  EXPECT_EQ((*keys)[1].family, NetworkLayer::ipv6);
  EXPECT_EQ((*keys)[1].source.high, 0x20010db800000000U);
  EXPECT_EQ((*keys)[1].protocol(), 17U);
}

TEST(TupleReader, EveryErrorIsReportedWithItsPlace) {
  const auto keys = read_tuples(
      "10.0.0.1 10.0.0.2 tcp 1 2\n10.0.0.1 10.0.0.256 tpc 1 65536\n10.0.0.1 ::1 tcp 1 2\n1.1.1.1\n", "stdin");
  ASSERT_FALSE(keys);
  const std::string errors = to_string(keys.error());
  EXPECT_THAT(errors, HasSubstr("stdin:2:10: wrong address: found '10.0.0.256', expected an IPv4 or IPv6 address"));
  EXPECT_THAT(errors, HasSubstr("stdin:2:21: unknown protocol: found 'tpc', expected tcp, udp, icmp"));
  EXPECT_THAT(errors, HasSubstr("stdin:2:27: wrong port: found '65536', expected a number up to 65535"));
  EXPECT_THAT(errors, HasSubstr("stdin:3:10: source and destination are of different address families"));
  EXPECT_THAT(errors, HasSubstr("stdin:4:1: tuple of 1 word: found '1.1.1.1', expected SOURCE DESTINATION"));
}

}  // namespace
}  // namespace penstock::firewall
