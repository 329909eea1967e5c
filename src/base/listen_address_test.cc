// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "base/listen_address.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace penstock {
namespace {

using ::testing::HasSubstr;

TEST(ListenAddress, HasAnIpAddressAndAPort) {
  for (const char* const text : {"127.0.0.1:9474", "[::1]:9474", "0.0.0.0:1", "[2001:db8::5]:65535"}) {
    const auto listen = parse_listen_address(text);
    ASSERT_TRUE(listen) << text;
    EXPECT_EQ(to_string(*listen), text);
  }
}

TEST(ListenAddress, KnowsLoopback) {
  EXPECT_TRUE(parse_listen_address("127.0.0.1:9474")->is_loopback());
  EXPECT_TRUE(parse_listen_address("127.8.8.8:9474")->is_loopback());
  EXPECT_TRUE(parse_listen_address("[::1]:9474")->is_loopback());
  for (const char* const text : {"0.0.0.0:9474", "[::]:9474", "192.0.2.1:9474", "[::ffff:127.0.0.1]:9474"})
    EXPECT_FALSE(parse_listen_address(text)->is_loopback()) << text;
}

TEST(ListenAddress, RefusesEverythingElse) {
  for (const char* const text : {"", ":", "9474", ":9474", "127.0.0.1", "127.0.0.1:", "127.0.0.1:x", "127.0.0.1:65536",
                                 "127.0.0.1:-1", "127.0.0.1: 1", "127.0.0.1:1 ", "localhost:9474", "[::1]", "[]:1",
                                 "[::1:9474", "[fe80::1%eth0]:9474", "[127.0.0.1]:9474"})
    EXPECT_FALSE(parse_listen_address(text)) << text;
}

TEST(ListenAddress, SaysWhatIsExpected) {
  const auto error_of = [](const char* text) { return to_string(parse_listen_address(text).error()); };
  EXPECT_THAT(error_of("eth0"), HasSubstr("found 'eth0', expected an IP address and a port, such as 127.0.0.1:9474"));
  EXPECT_THAT(error_of("::1:9474"), HasSubstr("expected brackets: [::1]:9474"));
  EXPECT_THAT(error_of("127.0.0.1:0"), HasSubstr("port 0 cannot be listened at"));
}

}  // namespace
}  // namespace penstock
