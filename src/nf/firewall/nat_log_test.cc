// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "nf/firewall/nat_log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <string>

#include "base/text_file.h"

namespace penstock::firewall {
namespace {

using conntrack::BlockEvent;

TEST(NatLog, HasALineForEachEvent) {
  const std::string path = ::testing::TempDir() + "nat.log";
  std::remove(path.c_str());
  report::EventLog log(path, report::EventLog::Start::anew);
  ASSERT_TRUE(log.open());
  log.begin();
  {
    NatLog nat(log);
    EXPECT_TRUE(nat.flush_if_due()) << "nothing is left to write";
    BlockEvent event{.kind = BlockEvent::Kind::allocated,
                     .time_ns = 1'700'000'000'000'000'000,
                     .subscriber = {{0, 0x0a000007}, 4},
                     .address = {0, 0xcb007105},
                     .first_port = 1024,
                     .last_port = 1535};
    nat.tell(event);
    EXPECT_FALSE(nat.flush_if_due());
    event.kind = BlockEvent::Kind::released;
    event.subscriber = {*parse_ipv6("fd00::7"), 6};
    event.address = *parse_ipv6("2001:db8::5");
    nat.tell(event);
  }
  EXPECT_TRUE(log.close().empty());
  const auto text = read_text_file(path);
  ASSERT_TRUE(text);
  EXPECT_THAT(*text,
              ::testing::MatchesRegex("2023-11-1[45]T..:.3:20\\.000000[+-].... penstock: allocated HOST=10.0.0.7 "
                                      "ADDRESS=203.0.113.5 PORTS=1024-1535\n.* penstock: released HOST=fd00::7 "
                                      "ADDRESS=2001:db8::5 PORTS=1024-1535\n"));
}

}  // namespace
}  // namespace penstock::firewall
