// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "cli/route.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cli/command_for_test.h"

namespace penstock::cli {
namespace {

class RouteCommand : public ::testing::Test {
 protected:
  void SetUp() override {
    routes_.write(
        "default via 10.1.0.2 dev wan \n"
        "10.0.0.0/24 dev lan proto kernel scope link src 10.0.0.1 \n"
        "172.16.0.0/12 \n\tnexthop via 10.1.0.2 dev wan weight 3 \n\tnexthop via 10.0.0.2 dev lan weight 1 \n"
        "blackhole 192.0.2.0/24 \n"
        "9.0.0.0/8 via inet6 fe80::5 dev wan \n"
        "2001:db8::/32 via fe80::1 dev wan metric 1024 pref medium\n");
  }

  [[nodiscard]] Outcome run(std::vector<std::string> arguments) const {
    arguments.insert(arguments.begin(), {"route", "--routes", routes_.path()});
    return outcome_of_command(add_route, arguments);
  }

  const TestFile routes_{"routes"};
};

TEST_F(RouteCommand, PrintsARouteAsIpDoes) {
  for (const char* const engine : {"dir24", "trie1", "trie4"}) {
    const Outcome outcome =
        run({"--engine", engine, "8.8.8.8", "10.0.0.7", "172.20.1.1", "192.0.2.1", "9.9.9.9", "2001:db8::1", "::1"});
    EXPECT_EQ(outcome.exit_code, 0);
    EXPECT_EQ(outcome.err, "");
    EXPECT_EQ(outcome.out,
              "8.8.8.8 0.0.0.0/0 via 10.1.0.2 dev wan\n"
              "10.0.0.7 10.0.0.0/24 dev lan\n"
              "172.20.1.1 172.16.0.0/12 nexthop via 10.1.0.2 dev wan weight 3 nexthop via 10.0.0.2 dev lan weight 1\n"
              "192.0.2.1 blackhole 192.0.2.0/24\n"
              "9.9.9.9 9.0.0.0/8 via inet6 fe80::5 dev wan\n"
              "2001:db8::1 2001:db8::/32 via fe80::1 dev wan\n"
              "::1 -\n")
        << engine;
  }
}

TEST_F(RouteCommand, PrintsJsonWithTheNamesOfIp) {
  const auto json = nlohmann::json::parse(run({"--json", "8.8.8.8", "172.20.1.1", "::1"}).out);
  ASSERT_EQ(json.size(), 3U);
  EXPECT_EQ(json[0]["dst"], "0.0.0.0/0");
  EXPECT_EQ(json[0]["gateway"], "10.1.0.2");
  EXPECT_EQ(json[0]["dev"], "wan");
  EXPECT_EQ(json[1]["nexthops"][1]["gateway"], "10.0.0.2");
  EXPECT_EQ(json[1]["nexthops"][0]["weight"], 3);
  EXPECT_TRUE(json[2]["dst"].is_null());
}

TEST_F(RouteCommand, NamesAllMistakesAndPrintsNoResults) {
  routes_.write("10.0.0.0/8 via 10.0.0 dev lan\n");
  const Outcome outcome = run({"8.8.8.8", "8.8.8"});
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_EQ(outcome.out, "");
  EXPECT_EQ(outcome.err, "not an address: found '8.8.8', expected an IPv4 or IPv6 address\n" + routes_.path() +
                             ":1:16: not a gateway: found '10.0.0', expected an IP address\n");
}

TEST_F(RouteCommand, WarnsAboutUnsupportedRoutesUnlessStrict) {
  routes_.write("10.0.0.0/8 dev lan\n11.0.0.0/8 dev lan tos 0x10\n");
  const Outcome lenient = run({"10.1.1.1"});
  EXPECT_EQ(lenient.exit_code, 0);
  EXPECT_EQ(lenient.out, "10.1.1.1 10.0.0.0/8 dev lan\n");
  EXPECT_NE(lenient.err.find(":2:20: routes by type of service are not supported: this route is left out"),
            std::string::npos)
      << lenient.err;
  const Outcome strict = run({"--strict", "10.1.1.1"});
  EXPECT_EQ(strict.exit_code, 2);
  EXPECT_EQ(strict.out, "");
  EXPECT_NE(strict.err.find("--strict: the routes are refused because of the unsupported constructs above\n"),
            std::string::npos);
}

TEST_F(RouteCommand, ReadsTheStandardInputForOneThingOnly) {
  const Outcome asked = run({"--routes", "-"});
  EXPECT_EQ(asked.exit_code, 2);
  EXPECT_EQ(asked.err, "--routes -: standard input can be read only once: expected addresses as arguments\n");
  const Outcome twice = run({"--routes", "-", "--routes", "-", "8.8.8.8"});
  EXPECT_EQ(twice.exit_code, 2);
  EXPECT_EQ(twice.err, "--routes -: standard input can be read only once: found two uses of -, expected a file\n");
}

TEST_F(RouteCommand, EscapesControlBytes) {
  routes_.write("10.0.0.0/8 dev \x1b[31mlan\xff\n");
  EXPECT_EQ(run({"10.1.1.1"}).out, "10.1.1.1 10.0.0.0/8 dev \\x1b[31mlan\\xff\n");
}

TEST_F(RouteCommand, WarnsIfThereAreNoRoutes) {
  routes_.write("# none yet\n");
  const Outcome outcome = run({"10.1.1.1"});
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_EQ(outcome.out, "10.1.1.1 -\n");
  EXPECT_EQ(outcome.err, "penstock: no routes in " + routes_.path() + "\n");
}

}  // namespace
}  // namespace penstock::cli
