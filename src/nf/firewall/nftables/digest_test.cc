// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "nf/firewall/nftables/digest.h"

#include <gtest/gtest.h>

#include <initializer_list>
#include <string>

namespace penstock::firewall::nftables {
namespace {

const std::string kGate = R"({"table": {"family": "inet", "name": "gate", "handle": 1}})";
const std::string kForward =
    R"({"chain": {"family": "inet", "table": "gate", "name": "c", "type": "filter", "hook": "forward", "prio": 0}})";
const std::string kHost = R"({"table": {"family": "inet", "name": "host", "handle": 2}})";
const std::string kInput =
    R"({"chain": {"family": "inet", "table": "host", "name": "c", "type": "filter", "hook": "input", "prio": 0}})";

std::string set_of(const std::string& table, const std::string& element) {
  return R"({"set": {"family": "inet", "name": "s", "table": ")" + table + R"(", "elem": [")" + element + R"("]}})";
}

std::size_t digest(std::initializer_list<std::string> objects, const std::string& version = "1.0.6") {
  std::string text = R"({"nftables": [{"metainfo": {"version": ")" + version + R"("}})";
  for (const std::string& object : objects) text += ", " + object;
  return digest_of(text + "]}");
}

TEST(NftablesDigest, ChangesWithTablesThatSeeForwardedPackets) {
  const std::size_t before = digest({kGate, kForward, set_of("gate", "10.0.0.1")});
  EXPECT_EQ(digest({kGate, kForward, set_of("gate", "10.0.0.1")}), before);
  EXPECT_EQ(digest({kGate, kForward, set_of("gate", "10.0.0.1")}, "1.1.0"), before) << "the same rules of another nft";
  EXPECT_NE(digest({kGate, kForward, set_of("gate", "10.0.0.2")}), before);
  EXPECT_NE(digest({kGate, kForward}), before);
  EXPECT_NE(digest({kGate, set_of("gate", "10.0.0.1"), kForward}), before) << "the order of rules counts";
}

TEST(NftablesDigest, LeavesOutTablesOfTheHostAlone) {
  const std::size_t before = digest({kGate, kForward});
  EXPECT_EQ(digest({kGate, kForward, kHost, kInput, set_of("host", "10.0.0.1")}), before);
  EXPECT_EQ(digest({kHost, kInput, kGate, kForward, set_of("host", "10.0.0.2")}), before);
  EXPECT_EQ(digest({kGate, kForward, set_of("unused", "10.0.0.2")}), before) << "a table without base chains";
  const std::string prerouting =
      R"({"chain": {"family": "inet", "table": "host", "name": "d", "type": "filter", "hook": "prerouting", "prio": 0}})";
  const std::size_t with = digest({kGate, kForward, kHost, kInput, prerouting, set_of("host", "10.0.0.1")});
  EXPECT_NE(with, before);
  EXPECT_NE(digest({kGate, kForward, kHost, kInput, prerouting, set_of("host", "10.0.0.2")}), with);
}

TEST(NftablesDigest, ChangesWithTheOrderOfTablesAndWhatIsInNone) {
  const std::string other =
      R"({"chain": {"family": "ip", "table": "gate", "name": "c", "hook": "forward", "prio": 0}})";
  EXPECT_NE(digest({kForward, other}), digest({other, kForward}));
  EXPECT_NE(digest({kForward, R"({"future": {"a": 1}})"}), digest({kForward, R"({"future": {"a": 2}})"}));
}

TEST(NftablesDigest, IsThatOfTheTextIfThisIsNoRuleSet) {
  EXPECT_NE(digest_of("{"), digest_of("{ "));
  EXPECT_EQ(digest_of("["), digest_of("["));
}

}  // namespace
}  // namespace penstock::firewall::nftables
