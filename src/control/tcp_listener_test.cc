// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "control/tcp_listener.h"

#include <gtest/gtest.h>
#include <netinet/in.h>

#include "base/testing/free_port.h"

namespace penstock::control {
namespace {

TEST(TcpListener, SaysWhetherAnAddressIsTaken) {
  const std::uint16_t port = penstock::testing::free_port();
  for (const ListenAddress& address :
       {ListenAddress{Ipv4Address{INADDR_LOOPBACK}, port}, ListenAddress{Ipv6Address{0, 1}, port}}) {
    EXPECT_FALSE(is_taken(address));
    {
      const auto listener = listen_at(address);
      ASSERT_TRUE(listener) << to_string(listener.error());
      EXPECT_TRUE(is_taken(address));
      EXPECT_FALSE(listen_at(address));
    }
    EXPECT_FALSE(is_taken(address));
    EXPECT_TRUE(listen_at(address));
  }
  EXPECT_FALSE(is_taken({Ipv4Address{0xc0000201}, port})) << "an address of nobody is none that another process has";
}

}  // namespace
}  // namespace penstock::control
