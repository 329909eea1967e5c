// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "control/http_request.h"

#include <gtest/gtest.h>

namespace penstock::control {
namespace {

const ListenAddress kLoopback{Ipv4Address{0x7f000001}, 9474};
const ListenAddress kLoopback6{Ipv6Address{0, 1}, 9474};
const ListenAddress kEverywhere{Ipv6Address{}, 9474};

HttpVerdict get(std::string_view host, const ListenAddress& listen) { return judge({"GET", host}, listen); }

TEST(HttpRequest, OnLoopbackServesHostsThatAreAddresses) {
  for (const char* const host : {"127.0.0.1:9474", "127.0.0.1", "[::1]:9474", "[::1]", "localhost", "LocalHost:9474",
                                 "192.0.2.1:80", "localhost:"}) {
    EXPECT_EQ(get(host, kLoopback), HttpVerdict::serve) << host;
    EXPECT_EQ(get(host, kLoopback6), HttpVerdict::serve) << host;
  }
}

TEST(HttpRequest, OnLoopbackRefusesNamesThatOthersCanGive) {
  for (const char* const host :
       {"evil.example", "evil.example:9474", "127.0.0.1.evil.example", "localhost.evil.example", "localhost.", "",
        ":9474", "[]", "[]:1", "::1", "[::1", "[::1]evil.example", "127.0.0.1:9474:9474", "127.0.0.1:x",
        "127.0.0.1:123456", "a@127.0.0.1", "127.0.0.1 ", "0x7f000001", "2130706433"})
    EXPECT_EQ(get(host, kLoopback), HttpVerdict::wrong_host) << host;
}

TEST(HttpRequest, ElsewhereServesAnyHost) { EXPECT_EQ(get("gateway.example:9474", kEverywhere), HttpVerdict::serve); }

TEST(HttpRequest, MayHaveNoHost) { EXPECT_EQ(judge({"GET", std::nullopt}, kLoopback), HttpVerdict::serve); }

TEST(HttpRequest, OnlyLooks) {
  EXPECT_EQ(judge({"HEAD", "localhost"}, kLoopback), HttpVerdict::serve);
  for (const char* const method : {"POST", "PUT", "DELETE", "OPTIONS", "TRACE", "CONNECT", "get", "", "GETS"})
    EXPECT_EQ(judge({method, "localhost"}, kLoopback), HttpVerdict::wrong_method) << method;
}

}  // namespace
}  // namespace penstock::control
