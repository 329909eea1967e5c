// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Rule files that are as costly as their authors could make them: the program answers, with the rules or with an error
// that names the place, in bounded time and memory.

#include <fcntl.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <string>
#include <string_view>

#include "program/program_for_test.h"

namespace penstock {
namespace {

using ::testing::HasSubstr;

/// The number as an address.
std::string ipv4(std::uint32_t number) {
  return fmt::format("10.{}.{}.{}", number >> 16 & 255, number >> 8 & 255, number & 255);
}
std::string ipv6(std::uint32_t number) { return fmt::format("2001:db8::{:x}:{:x}", number >> 16, number & 0xffff); }

/// `one(i)` for each number below `count`.
template <typename One>
std::string each(std::uint32_t count, const One& one, std::string_view between = "") {
  std::string text;
  for (std::uint32_t i = 0; i < count; ++i) {
    if (i != 0) text += between;
    text += one(i);
  }
  return text;
}

/// What `nft -j list ruleset` would print: a chain `forward`, and these objects, each with a comma before it.
std::string nft_json(const std::string& objects) {
  return R"({"nftables": [{"table": {"family": "inet", "name": "t", "handle": 1}},
{"chain": {"family": "inet", "table": "t", "name": "forward", "handle": 1, "type": "filter", "hook": "forward",
           "prio": 0, "policy": "accept"}})" +
         objects + "]}\n";
}
std::string rule(std::string_view expressions, std::string_view chain = "forward") {
  return fmt::format(
      ",\n{{\"rule\": {{\"family\": \"inet\", \"table\": \"t\", \"chain\": \"{}\", \"handle\": 9, \"expr\": [{}]}}}}",
      chain, expressions);
}
std::string chains(std::uint32_t count) {
  return each(count, [](std::uint32_t i) {
    return fmt::format(",\n{{\"chain\": {{\"family\": \"inet\", \"table\": \"t\", \"name\": \"c{}\", \"handle\": 1}}}}",
                       i);
  });
}
std::string jump(std::uint32_t chain) { return fmt::format(R"({{"jump": {{"target": "c{}"}}}})", chain); }
std::string set(std::string_view type, const std::string& elements, std::string_view more = "") {
  return fmt::format(
      ",\n{{\"set\": {{\"family\": \"inet\", \"table\": \"t\", \"name\": \"s\", \"type\": {}, \"handle\": 2, \"elem\": "
      "[{}]{}}}}}",
      type, elements, more);
}
constexpr std::string_view kSource4 = R"({"payload": {"protocol": "ip", "field": "saddr"}})";
constexpr std::string_view kSource6 = R"({"payload": {"protocol": "ip6", "field": "saddr"}})";
std::string drop_if(std::string_view left, std::string_view right) {
  return fmt::format(R"({{"match": {{"op": "==", "left": {}, "right": {}}}}}, {{"drop": null}})", left, right);
}

std::string iptables(const std::string& declarations, const std::string& rules) {
  return "*filter\n:FORWARD ACCEPT [0:0]\n" + declarations + rules + "COMMIT\n";
}
std::string iptables_chains(std::uint32_t count) {
  return each(count, [](std::uint32_t i) { return fmt::format(":c{} - [0:0]\n", i); });
}

class HostileRules : public Program {
 protected:
  void SetUp() override {
    Program::SetUp();
#ifdef PENSTOCK_SANITIZED
    GTEST_SKIP() << "time and memory are bounded without sanitizers; the fuzzers of the readers run with them";
#endif
  }
  /// What `penstock check`, or another command, says about the file `rules`. Fails if that takes long or much memory.
  [[nodiscard]] std::string answer(const std::string& more = "",
                                   const std::string& command = "check chain.yaml") const {
    write("chain.yaml",
          "ports:\n  lan: {pcap: {read: in.pcap}}\n  wan: {\"null\": {}}\nchain:\n  - firewall: {rules: rules" + more +
              "}\nwire: {lan: wan}\n");
    rusage before{}, after{};
    ::getrusage(RUSAGE_CHILDREN, &before);
    const int status = shell("penstock " + command);
    ::getrusage(RUSAGE_CHILDREN, &after);
    EXPECT_THAT(status, ::testing::AnyOf(0, 2)) << read("err");
    EXPECT_LT(after.ru_utime.tv_sec - before.ru_utime.tv_sec, 20);
    EXPECT_LT(after.ru_maxrss, 2 << 20) << "KiB, of this or an earlier command";
    const std::string said = read("out") + read("err");
    EXPECT_LT(said.size(), 20'000U);
    return said;
  }
  [[nodiscard]] std::string answer_to(const std::string& rules, const std::string& more = "",
                                      const std::string& command = "check chain.yaml") const {
    write("rules", rules);
    return answer(more, command);
  }
};

TEST_F(HostileRules, ChainsThatCallEachOther) {
  constexpr std::uint32_t kMany = 100'000;
  const auto in_turn = [](std::uint32_t i) { return rule(jump(i + 1), fmt::format("c{}", i)); };
  const std::string calls = rule(jump(0)) + each(kMany, in_turn);
  EXPECT_THAT(answer_to(nft_json(chains(kMany + 1) + calls + rule("{\"drop\": null}", fmt::format("c{}", kMany)))),
              HasSubstr("100,002 rules"));
  EXPECT_THAT(answer_to(nft_json(chains(kMany + 1) + calls + rule(jump(7), fmt::format("c{}", kMany)))),
              HasSubstr("a chain calls itself: found 'inet t c7'"));
  EXPECT_THAT(
      answer_to(nft_json(chains(65) + rule(jump(0)) +
                         each(128, [](std::uint32_t i) { return rule(jump(i / 2 + 1), fmt::format("c{}", i / 2)); }))),
      HasSubstr("too many rules after expanding the chains called here: found more than 1,000,000"));

  const std::string from_start = "-A FORWARD -j c0\n";
  const auto call = [](std::uint32_t i) { return fmt::format("-A c{} -j c{}\n", i, i + 1); };
  const auto conditional = [](std::uint32_t i) { return fmt::format("-A c{} -s {}/32 -j c{}\n", i, ipv4(i), i + 1); };
  EXPECT_THAT(answer_to(iptables(iptables_chains(kMany + 1), from_start + each(kMany, call) + "-A c100000 -j DROP\n")),
              HasSubstr("100,002 rules"));
  EXPECT_THAT(answer_to(iptables(iptables_chains(kMany + 1), from_start + each(kMany, call) + "-A c100000 -j c5\n")),
              HasSubstr("rules:200005: a chain calls itself: found 'c5'"));
  EXPECT_THAT(answer_to(iptables(iptables_chains(kMany + 1), from_start + each(kMany, conditional))),
              HasSubstr("too many conditions along a chain of calls: found more than 1,024"));
  EXPECT_THAT(answer_to(iptables(iptables_chains(65),
                                 from_start + each(64,
                                                   [&](std::uint32_t i) {
                                                     return fmt::format("-A c{0} -p tcp -g c{1}\n-A c{0} -g c{1}\n", i,
                                                                        i + 1);
                                                   }))),
              HasSubstr("too many rules after expanding"));
}

TEST_F(HostileRules, AMillionElements) {
  constexpr std::uint32_t kMany = 1'000'000;
  const auto quoted4 = [](std::uint32_t i) { return '"' + ipv4(2 * i) + '"'; };
  const auto quoted6 = [](std::uint32_t i) { return '"' + ipv6(2 * i) + '"'; };
  EXPECT_THAT(answer_to(nft_json(set("\"ipv4_addr\"", each(kMany, quoted4, ",")) + rule(drop_if(kSource4, "\"@s\"")))),
              HasSubstr("too many rules: found more than 1,000,000"));
  EXPECT_THAT(answer_to(nft_json(set("\"ipv6_addr\"", each(kMany, quoted6, ",")) + rule(drop_if(kSource6, "\"@s\"")))),
              HasSubstr("too many rules: found more than 1,000,000"));
  const std::string ranges = each(
      kMany / 2,
      [](std::uint32_t i) { return fmt::format(R"({{"range": ["{}", "{}"]}})", ipv4(4 * i), ipv4(4 * i + 1)); }, ",");
  EXPECT_THAT(answer_to(nft_json(set("\"ipv4_addr\"", ranges, ", \"flags\": [\"interval\"]") +
                                 rule(drop_if(kSource4, "\"@s\"")))),
              HasSubstr("too many rules for bit vectors"));
  const std::string pairs = each(
      kMany / 2, [](std::uint32_t i) { return fmt::format(R"({{"concat": ["{}", {}]}})", ipv4(i), 1 + i % 60'000); },
      ",");
  EXPECT_THAT(answer_to(nft_json(set(R"(["ipv4_addr", "inet_service"])", pairs) +
                                 rule(drop_if(fmt::format(R"({{"concat": [{}, {}]}})", kSource4,
                                                          R"({"payload": {"protocol": "tcp", "field": "dport"}})"),
                                              "\"@s\"")))),
              HasSubstr("too many rules for bit vectors"));
  const std::string verdicts = each(
      kMany, [](std::uint32_t i) { return fmt::format(R"(["{}", {{"drop": null}}])", ipv4(2 * i)); }, ",");
  EXPECT_THAT(answer_to(nft_json(
                  ",\n{\"map\": {\"family\": \"inet\", \"table\": \"t\", \"name\": \"m\", \"type\": \"ipv4_addr\", "
                  "\"map\": \"verdict\", \"handle\": 2, \"elem\": [" +
                  verdicts + "]}}" + rule(fmt::format(R"({{"vmap": {{"key": {}, "data": "@m"}}}})", kSource4)))),
              HasSubstr("too many rules: found more than 1,000,000"));
}

TEST_F(HostileRules, SetsThatChange) {
  const std::string changes = rule(drop_if(kSource4, "\"@s\"")) +
                              rule(fmt::format(R"({{"set": {{"op": "add", "elem": {}, "set": "@s"}}}})", kSource4));
  const std::string elements = each(
      1'000'000, [](std::uint32_t i) { return '"' + ipv4(2 * i) + '"'; }, ",");
  const std::string listed =
      nft_json(set("\"ipv4_addr\"", elements, ", \"flags\": [\"dynamic\"], \"size\": 4194304") + changes);
  EXPECT_THAT(answer_to(listed), HasSubstr("2 rules"));
  EXPECT_THAT(answer("", "explain chain.yaml --packet tcp 10.0.0.2:1 192.0.2.7:80"), HasSubstr("by rule 0"));
  EXPECT_THAT(answer("", "explain chain.yaml --packet tcp 10.0.0.3:1 192.0.2.7:80"), HasSubstr("by policy accept"));
  for (const char* size : {"4194304", "4294967295", "4294967296"}) {
    EXPECT_THAT(answer_to(nft_json(
                    set("\"ipv4_addr\"", "", fmt::format(", \"flags\": [\"dynamic\"], \"size\": {}", size)) + changes)),
                HasSubstr("2 rules"))
        << size;
  }
  for (const char* size : {"18446744073709551616", "-1", "1e30", "\"x\""}) {
    EXPECT_THAT(answer_to(nft_json(
                    set("\"ipv4_addr\"", "", fmt::format(", \"flags\": [\"dynamic\"], \"size\": {}", size)) + changes)),
                HasSubstr("wrong size of a set"))
        << size;
  }
  // Room for a billion elements in all; each packet adds one to each set.
  std::string sets, rules;
  for (int i = 0; i < 250; ++i) {
    std::string one = set("\"ipv4_addr\"", "", ", \"flags\": [\"dynamic\"], \"size\": 4194304") + changes;
    for (std::size_t at = 0; (at = one.find("\"@s\"", at)) != std::string::npos; ++at)
      one.replace(at, 4, fmt::format("\"@s{}\"", i));
    one.replace(one.find("\"name\": \"s\""), 11, fmt::format("\"name\": \"s{}\"", i));
    sets += one;
  }
  EXPECT_THAT(answer_to(nft_json(sets), "", "run chain.yaml"), HasSubstr("1 worker on the CPU"));
}

TEST_F(HostileRules, Ipsets) {
  const std::string many = "create s hash:ip maxelem 4294967295\n" +
                           each(900'000, [](std::uint32_t i) { return "add s " + ipv4(2 * i) + "\n"; });
  write("sets", many);
  const std::string uses = each(5'000, [](std::uint32_t) { return "-A FORWARD -m set --match-set s src -j DROP\n"; });
  EXPECT_THAT(answer_to(iptables("", "-A FORWARD -m set --match-set s src -j DROP\n"), ", ipsets: sets"),
              HasSubstr("1 rule"));
  EXPECT_THAT(answer_to(iptables("", uses), ", ipsets: sets"),
              HasSubstr("rules:20:15: too many values of sets in all rules that use them"));
  write("sets", "create s hash:ip,port maxelem 4294967295\n" + each(900'000, [](std::uint32_t i) {
                  return fmt::format("add s {},tcp:{}\n", ipv4(2 * i), 1 + i % 60'000);
                }));
  const std::string pairs =
      each(5'000, [](std::uint32_t) { return "-A FORWARD -m set --match-set s src,dst -j DROP\n"; });
  EXPECT_THAT(answer_to(iptables("", pairs), ", ipsets: sets"), HasSubstr("5,000 rules")) << "all use the same";
  write("sets", "create a hash:ip family inet6\ncreate s list:set size 1000000\n" +
                    each(900'000, [](std::uint32_t) { return "add s a\n"; }));
  EXPECT_THAT(answer_to(iptables("", uses), ", ipsets: sets"), HasSubstr("too many values of sets"));
  write("sets", "create s hash:ip maxelem 99999999999999999999 timeout 99999999999999\n");
  EXPECT_THAT(answer_to(iptables("", uses), ", ipsets: sets"), HasSubstr("sets:1: wrong number"));
}

TEST_F(HostileRules, AMillionRulesAndLongWords) {
  constexpr std::uint32_t kMany = 1'000'000;
  const std::string rules = each(kMany, [](std::uint32_t i) { return "-A FORWARD -s " + ipv4(i) + "/32 -j DROP\n"; });
  EXPECT_THAT(answer_to(iptables("", rules)), HasSubstr("rules:1000001: too many rules: found more than 1,000,000"));
  EXPECT_THAT(
      answer_to(nft_json(each(kMany, [](std::uint32_t i) { return rule(drop_if(kSource4, '"' + ipv4(i) + '"')); }))),
      HasSubstr("too many rules: found more than 1,000,000"));
  const std::string name(1'000'000, 'n');
  EXPECT_THAT(answer_to(iptables(":" + name + " - [0:0]\n", "-A FORWARD -j " + name + "\n-A " + name + " -j DROP\n")),
              HasSubstr("2 rules"));
  const std::string comment(900'000, 'c');
  EXPECT_THAT(
      answer_to(iptables(
          "",
          each(100, [&](std::uint32_t) { return "-A FORWARD -m comment --comment \"" + comment + "\" -j DROP\n"; }))),
      HasSubstr("100 rules"));
  EXPECT_THAT(answer_to(nft_json(",\n{\"chain\": {\"family\": \"inet\", \"table\": \"t\", \"name\": \"" + name +
                                 "\", \"handle\": 1}}" + rule("{\"jump\": {\"target\": \"" + name + "\"}}") +
                                 rule("{\"drop\": null}", name))),
              HasSubstr("2 rules"));
  EXPECT_THAT(answer_to("{\"nftables\":" + std::string(kMany, '[') + std::string(kMany, ']') + "}"),
              HasSubstr("not an object"));
}

TEST_F(HostileRules, NumbersThatOverflow) {
  const std::string limits = answer_to(
      iptables("",
               "-A FORWARD -m limit --limit 99999999999999999999/sec -j ACCEPT\n"
               "-A FORWARD -m quota --quota 99999999999999999999999 -j ACCEPT\n"
               "-A FORWARD -m connlimit --connlimit-above 99999999999 -j DROP\n"
               "-A FORWARD -m hashlimit --hashlimit-upto 5/sec --hashlimit-name a --hashlimit-htable-max 99999999999 "
               "-j DROP\n"
               "-A FORWARD -m recent --name x --rcheck --seconds 99999999999 -j DROP\n"
               "-A FORWARD -p tcp --dport 99999999999 -j DROP\n"));
  for (const char* line : {"rules:3:", "rules:4:", "rules:5:", "rules:6:", "rules:7:", "rules:8:"})
    EXPECT_THAT(limits, HasSubstr(line));
  const std::string json = answer_to(
      nft_json(rule(R"({"limit": {"rate": 18446744073709551615, "per": "week"}}, {"accept": null})") +
               rule(R"({"quota": {"val": 18446744073709551616, "val_unit": "mbytes"}}, {"accept": null})") +
               rule(R"({"ct count": {"val": 9223372036854775808}}, {"drop": null})") +
               rule(drop_if(R"({"payload": {"protocol": "tcp", "field": "dport"}})", "65536")) +
               rule(drop_if(R"({"payload": {"protocol": "tcp", "field": "dport"}})", R"({"range": [5, 1]})"))));
  for (const char* place : {"nftables[2]", "nftables[3]", "nftables[4]", "nftables[5]", "nftables[6]"})
    EXPECT_THAT(json, HasSubstr(place));
}

}  // namespace
}  // namespace penstock
