// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "nf/firewall/nftables/reader.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <string>
#include <vector>

#include "base/text_file.h"
#include "nf/firewall/firewall.h"
#include "nf/firewall/rules_for_test.h"
#include "packet/parse_core.h"
#include "packet/testing/packet_builder.h"

namespace penstock::firewall::nftables {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

/// Builds the output of `nft -j list ruleset` object by object.
class Ruleset {
 public:
  Ruleset& add(const std::string& object) {
    objects_ += (objects_.empty() ? "" : ", ") + object;
    return *this;
  }
  Ruleset& base(const std::string& family, const std::string& name, int priority, const std::string& policy,
                const std::string& type = "filter", const std::string& hook = "forward") {
    return add(fmt::format(
        R"({{"chain": {{"family": "{}", "table": "t", "name": "{}", "handle": 1, "type": "{}", "hook": "{}", "prio": {}, "policy": "{}"}}}})",
        family, name, type, hook, priority, policy));
  }
  Ruleset& chain(const std::string& name, const std::string& family = "inet") {
    return add(
        fmt::format(R"({{"chain": {{"family": "{}", "table": "t", "name": "{}", "handle": 2}}}})", family, name));
  }
  /// Handles count from 1.
  Ruleset& rule(const std::string& chain, const std::string& statements, const std::string& family = "inet") {
    return add(fmt::format(R"({{"rule": {{"family": "{}", "table": "t", "chain": "{}", "handle": {}, "expr": [{}]}}}})",
                           family, chain, ++handle_, statements));
  }
  Ruleset& set(const std::string& name, const std::string& type, const std::string& rest) {
    return add(fmt::format(R"({{"set": {{"family": "inet", "table": "t", "name": "{}", "type": {}, "handle": 3{}}}}})",
                           name, type, rest));
  }
  std::string text() const { return "{\"nftables\": [" + objects_ + "]}"; }
  operator std::string() const { return text(); }  // NOLINT(google-explicit-constructor): reads as the text

 private:
  std::string objects_;
  int handle_ = 0;
};

using firewall::errors_of;
using firewall::rules_of;
std::string errors_of(const Ruleset& rules, const ReadOptions& options = {}) {
  return errors_of(std::string_view(rules.text()), options);
}
classify::Ruleset rules_of(const Ruleset& rules, const ReadOptions& options = {}) {
  return rules_of(std::string_view(rules.text()), options);
}

/// A table of family inet with the base chain `forward`, whose policy is drop.
Ruleset inet() { return Ruleset().base("inet", "forward", 0, "drop"); }

std::string match(const std::string& left, const std::string& right, const std::string& op = "==") {
  return fmt::format(R"({{"match": {{"op": "{}", "left": {}, "right": {}}}}})", op, left, right);
}
std::string payload(const std::string& protocol, const std::string& field) {
  return fmt::format(R"({{"payload": {{"protocol": "{}", "field": "{}"}}}})", protocol, field);
}
std::string meta(const std::string& key) { return fmt::format(R"({{"meta": {{"key": "{}"}}}})", key); }
std::string ct(const std::string& key) { return fmt::format(R"({{"ct": {{"key": "{}"}}}})", key); }
std::string jump(const std::string& chain) { return fmt::format(R"({{"jump": {{"target": "{}"}}}})", chain); }
const std::string kAccept = R"({"accept": null})", kDrop = R"({"drop": null})";
const std::string kDport = payload("tcp", "dport"), kSaddr = payload("ip", "saddr");

constexpr const char* kWeb = "10.0.0.1 10.0.0.2 tcp 1024 80";
constexpr const char* kSsh = "10.0.0.1 10.0.0.2 tcp 1024 22";
constexpr const char* kWeb6 = "2001:db8::1 2001:db8::2 tcp 1024 80";

/// The only reason why something of the text is left out, without its consequence.
std::string unsupported_of(const std::string& text, const ReadOptions& options = {}) {
  const auto read = read_rules(text, "rules", options);
  if (!read) return "error: " + to_string(read.error());
  if (read->unsupported.size() != 1) return to_string(read->unsupported);
  const std::string reason = to_string(read->unsupported.front());
  return reason.substr(0, reason.find(": without this rule"));
}

TEST(NftablesReader, IsDetectedByItsContent) {
  EXPECT_EQ(decide(rules_of(" \n" + inet().rule("forward", match(kDport, "80") + "," + kAccept).text()), tuple(kWeb)),
            "0 accept");
  ReadOptions options;
  options.format = rule_format_of("nftables");
  EXPECT_THAT(errors_of("*filter\nCOMMIT\n", options), HasSubstr("rules:1:1: not valid JSON: found '*'"));
}

TEST(NftablesReader, ReadsALineOfAnyLength) {
  const std::string comment(kMostLineBytes, 'x');
  const std::string text = inet().rule("forward", match(kDport, "80") + "," + kAccept).text();
  std::string long_text = text;
  long_text.insert(long_text.find("\"expr\""), "\"comment\": \"" + comment + "\", ");
  EXPECT_EQ(decide(rules_of(long_text), tuple(kWeb)), "0 accept");
}

TEST(NftablesReader, ShowsRulesAsNftDoes) {
  const classify::Ruleset rules =
      rules_of(inet()
                   .rule("forward", match(kDport, R"({"set": [22, {"range": [80, 90]}]})") +
                                        R"(, {"counter": {"packets": 1, "bytes": 2}}, )" + kAccept)
                   .rule("forward", match(R"({"&": [)" + payload("tcp", "flags") + R"(, ["fin", "syn"]]})", "\"syn\"") +
                                        "," + kDrop)
                   .rule("forward", match(meta("iifname"), "\"eth*\"", "!=") + "," +
                                        match(kSaddr, R"({"prefix": {"addr": "10.0.0.0", "len": 8}})") +
                                        R"(, {"reject": {"type": "icmp", "expr": "host-prohibited"}})")
                   .rule("forward", R"({"vmap": {"key": {"concat": [)" + kSaddr + "," + kDport +
                                        R"(]}, "data": {"set": [[{"concat": ["1.1.1.1", 22]}, {"accept": null}]]}}})"),
               [] {
                 ReadOptions options;
                 options.interfaces.unknown_is_none = true;
                 return options;
               }());
  std::vector<std::string> texts;
  for (const classify::Rule& rule : rules.rules) texts.push_back(rule.text);
  EXPECT_THAT(texts, ElementsAre("inet t forward: tcp dport { 22, 80-90 } counter accept # handle 1",
                                 "inet t forward: tcp flags & (fin | syn) == syn drop # handle 2",
                                 "inet t forward: iifname != \"eth*\" ip saddr 10.0.0.0/8 reject with icmp "
                                 "host-prohibited # handle 3",
                                 "inet t forward: ip saddr . tcp dport vmap { 1.1.1.1 . 22 : accept } # handle 4"));
}

TEST(NftablesReader, PacketsPassAllBaseChainsInTheOrderOfTheirPriorities) {
  // The second in the file comes first. What it accepts goes on to the other.
  const classify::Ruleset rules = rules_of(Ruleset()
                                               .base("inet", "late", 10, "accept")
                                               .base("inet", "early", -5, "drop")
                                               .rule("late", match(kDport, "22") + R"(, {"reject": null})")
                                               .rule("early", match(meta("l4proto"), "\"tcp\"") + "," + kAccept));
  EXPECT_EQ(decide(rules, tuple(kWeb)), "- accept");
  EXPECT_EQ(decide(rules, tuple(kSsh)), "0 reject");
  EXPECT_EQ(decide(rules, tuple("10.0.0.1 10.0.0.2 udp 1 22")), "2 drop") << "by the policy of the first chain";
  EXPECT_EQ(rules.rules[2].text, "inet t early: policy drop");
}

TEST(NftablesReader, RulesExplainWhatHappensToAPacket) {
  const auto firewall = Firewall::build(rules_of(Ruleset()
                                                     .base("inet", "early", 0, "drop")
                                                     .base("inet", "late", 1, "drop")
                                                     .rule("early", match(kDport, "80") + "," + kAccept)
                                                     .rule("late", match(kDport, "22") + "," + kAccept)
                                                     .rule("late", match(kSaddr, "\"10.0.0.1\"") + "," + kDrop)),
                                        classify::Engine::linear);
  ASSERT_TRUE(firewall);
  penstock::testing::Bytes bytes = penstock::testing::packet().ipv4("10.0.0.1", "10.0.0.2").tcp(1, 80).bytes();
  PacketDescriptor descriptor;
  descriptor.length = descriptor.wire_length = static_cast<std::uint32_t>(bytes.size());
  descriptor.layout = parse(bytes.data(), descriptor.length, descriptor.wire_length, LinkType::raw_ip);
  const auto explanation = (*firewall)->explain({bytes.data(), &descriptor});
  ASSERT_TRUE(explanation);
  EXPECT_EQ(explanation->decided_by, "rule 2: inet t late: ip saddr 10.0.0.1 drop # handle 3");
  ASSERT_EQ(explanation->passed_over.size(), 3U);
  EXPECT_EQ(explanation->passed_over[0].what, "rule 0: inet t early: tcp dport 80 accept # handle 1");
  EXPECT_EQ(explanation->passed_over[0].why, "matches, and ends its chain; what comes after the chain decides");
  EXPECT_EQ(explanation->passed_over[1].what, "rule 3: inet t early: policy drop");
  EXPECT_EQ(explanation->passed_over[1].why, "skipped by rule 0");
  EXPECT_EQ(explanation->passed_over[2].why, "the destination port 80 is not in 22");
}

TEST(NftablesReader, EachFamilyPassesItsOwnBaseChains) {
  const classify::Ruleset rules = rules_of(Ruleset()
                                               .base("inet", "both", 0, "drop")
                                               .base("ip", "four", 5, "accept")
                                               .rule("both", match(kDport, R"({"set": [22, 80]})") + "," + kAccept)
                                               .rule("four", match(kDport, "80") + "," + kDrop, "ip"));
  EXPECT_EQ(decide(rules, tuple(kWeb)), "1 drop");
  EXPECT_EQ(decide(rules, tuple(kSsh)), "- accept");
  EXPECT_EQ(decide(rules, tuple(kWeb6)), "0 accept") << "for IPv6, the chain is the last";
  EXPECT_EQ(decide(rules, tuple("2001:db8::1 2001:db8::2 tcp 1 1")), "- drop");
  EXPECT_EQ(decide(rules, tuple("10.0.0.1 10.0.0.2 tcp 1 1")), "2 drop");
}

TEST(NftablesReader, AFamilyWithoutABaseChainPasses) {
  const classify::Ruleset rules = rules_of(Ruleset().base("ip", "forward", 0, "drop"));
  EXPECT_EQ(decide(rules, tuple(kWeb)), "- drop");
  EXPECT_EQ(decide(rules, tuple(kWeb6)), "- accept");
}

TEST(NftablesReader, AcceptInACalledChainEndsOnlyTheBaseChain) {
  const classify::Ruleset rules = rules_of(Ruleset()
                                               .base("inet", "one", 0, "drop")
                                               .base("inet", "two", 1, "accept")
                                               .chain("helper")
                                               .rule("helper", match(kDport, "80") + "," + kAccept)
                                               .rule("one", jump("helper"))
                                               .rule("one", match(kDport, "22") + R"(, {"goto": {"target": "helper"}})")
                                               .rule("one", kAccept)
                                               .rule("two", match(kDport, "80") + "," + kDrop));
  EXPECT_EQ(decide(rules, tuple(kWeb)), "4 drop");
  EXPECT_EQ(decide(rules, tuple(kSsh)), "5 drop") << "goto does not come back: the policy of chain one";
  EXPECT_EQ(decide(rules, tuple("10.0.0.1 10.0.0.2 tcp 1 1")), "- accept");
}

TEST(NftablesReader, ARuleWithAVerdictMapCountsOnceForEachTarget) {
  const classify::Ruleset rules = rules_of(
      inet()
          .rule(
              "forward",
              R"({"vmap": {"key": )" + kDport +
                  R"(, "data": {"set": [[22, {"drop": null}], [80, {"accept": null}], [{"range": [81, 90]}, {"accept": null}]]}}})")
          .rule("forward", kAccept));
  EXPECT_EQ(decide(rules, tuple(kSsh)), "0 drop");
  EXPECT_EQ(decide(rules, tuple(kWeb)), "1 accept");
  EXPECT_EQ(decide(rules, tuple("1.1.1.1 1.1.1.1 tcp 1 85")), "1 accept");
  EXPECT_EQ(decide(rules, tuple("1.1.1.1 1.1.1.1 tcp 1 91")), "2 accept");
}

TEST(NftablesReader, InterfacesAreMapped) {
  ReadOptions options;
  options.interfaces.ports = {"lan", "wan"};
  options.interfaces.aliases = {{"eth0", "lan"}, {"ppp*", "wan"}};
  const std::string text = inet().rule(
      "forward", match(meta("iifname"), "\"ppp*\"") + "," + match(meta("oifname"), "\"eth0\"") + "," + kAccept);
  const classify::Ruleset rules = rules_of(text, options);
  EXPECT_EQ(decide(rules, through(tuple(kWeb), 1, 0)), "0 accept");
  EXPECT_EQ(decide(rules, through(tuple(kWeb), 0, 0)), "- drop");
  EXPECT_THAT(rules.interface_names, ElementsAre("eth0", "ppp+"));
  options.interfaces.aliases.pop_back();
  EXPECT_EQ(errors_of(text, options),
            "rules: nftables[1].rule (table inet t, chain forward, rule handle 1): unknown interface: found 'ppp*', "
            "expected a port of the chain (lan, wan), or a name that `interfaces` maps to one or to none");
  options.interfaces.aliases = {{"ppp*", "wan"}, {"eth0", "lan"}};
  options.interfaces.out_known = false;
  EXPECT_EQ(unsupported_of(text, options),
            "rules: nftables[1].rule.expr[1].match.left (table inet t, chain forward, rule handle 1): oifname is "
            "supported only if an earlier function chooses the port, such as router");
}

TEST(NftablesReader, PolicyOfTheUserIsForOneBaseChain) {
  ReadOptions options;
  options.policy = classify::Target::reject;
  EXPECT_EQ(decide(rules_of(inet(), options), tuple(kWeb)), "- reject");
  EXPECT_EQ(
      errors_of(inet().base("ip", "more", 0, "accept"), options),
      "rules: `policy` is set, but packets pass several base chains: found 'reject', expected no `policy`, or one "
      "base chain of type filter at hook forward for each family");
}

TEST(NftablesReader, OptionsOfOtherFormatsAreRefused) {
  ReadOptions options;
  options.chain = "INPUT";
  EXPECT_THAT(errors_of(inet(), options), HasSubstr("`chain` is set, but all base chains"));
  options = {};
  options.match = classify::Target::drop;
  EXPECT_THAT(errors_of(inet(), options), HasSubstr("`match` is set, but nftables rules have targets"));
  options = {};
  options.decides = classify::Match::last;
  EXPECT_THAT(errors_of(inet(), options), HasSubstr("`decides` is set, but the first match decides"));
}

TEST(NftablesReader, RulesThatOnlyObserveAreLeftOut) {
  const auto read = read_rules(inet()
                                   .rule("forward", R"({"log": null})")
                                   .rule("forward", R"({"counter": {"packets": 0, "bytes": 0}})")
                                   .rule("forward", R"({"log": {"prefix": "x"}}, )" + kAccept)
                                   .text(),
                               "rules", {});
  ASSERT_TRUE(read);
  EXPECT_THAT(read->unsupported, IsEmpty());
  EXPECT_EQ(to_string(read->harmless),
            "rules: nftables[1].rule (table inet t, chain forward, rule handle 1): log without `packet_log` in "
            "`outputs` is not supported: without this "
            "rule, packets have the same verdict\n"
            "rules: nftables[2].rule (table inet t, chain forward, rule handle 2): a rule without a verdict is not "
            "supported: without this rule, packets have the same verdict\n"
            "rules: nftables[3].rule (table inet t, chain forward, rule handle 3): log without `packet_log` in "
            "`outputs` is not supported: the rule applies "
            "without it");
  EXPECT_EQ(decide(read->value, tuple(kWeb)), "2 accept");
}

/// In Linux, later packets of an offloaded connection pass by the rules. Here, the rules decide about them.
TEST(NftablesReader, FlowOffloadIsIgnored) {
  const std::string offload = R"({"flow": {"op": "add", "flowtable": "@f"}})";
  const auto read = read_rules(inet()
                                   .rule("forward", match(meta("l4proto"), "\"tcp\"") + "," + offload)
                                   .rule("forward", match(kDport, "80") + "," + offload + "," + kAccept)
                                   .text(),
                               "rules", {});
  ASSERT_TRUE(read);
  EXPECT_THAT(read->unsupported, IsEmpty());
  EXPECT_EQ(
      to_string(read->harmless),
      "rules: nftables[1].rule (table inet t, chain forward, rule handle 1): flow offload is not supported: without "
      "this rule, packets have the same verdict\n"
      "rules: nftables[2].rule (table inet t, chain forward, rule handle 2): flow offload is not supported: the rule "
      "applies without it");
  EXPECT_EQ(decide(read->value, tuple(kWeb)), "1 accept");
  EXPECT_EQ(read->value.rules[1].text, "inet t forward: tcp dport 80 flow add @f accept # handle 2");
}

struct Unsupported {
  const char* name;
  std::string statements;
  std::string reason;  // after "rules: nftables[1].rule"
};

class UnsupportedInNftables : public ::testing::TestWithParam<Unsupported> {};

TEST_P(UnsupportedInNftables, IsReportedByItsPlaceAndTheRuleIsLeftOut) {
  const std::string text = inet().rule("forward", GetParam().statements);
  EXPECT_THAT(unsupported_of(text), HasSubstr(GetParam().reason));
  const auto read = read_rules(text, "rules", {});
  ASSERT_TRUE(read);
  EXPECT_THAT(read->value.entries, IsEmpty());
  EXPECT_TRUE(read->value.rules.front().left_out);
}

const std::string kIn = " (table inet t, chain forward, rule handle 1): ";

INSTANTIATE_TEST_SUITE_P(
    Nftables, UnsupportedInNftables,
    ::testing::Values(
        Unsupported{"ct", match(ct("zone"), "1") + "," + kAccept,
                    "rule.expr[0].match.left" + kIn + "ct zone is not supported"},
        Unsupported{"ct_map", R"({"vmap": {"key": {"ct": {"key": "zone"}}, "data": {"set": [[1, {"drop": null}]]}}})",
                    "rule.expr[0].vmap.key" + kIn + "ct zone is not supported"},
        Unsupported{"ct_of_a_direction",
                    match(R"({"ct": {"key": "saddr", "dir": "original"}})", "\"10.0.0.1\"") + "," + kAccept,
                    "rule.expr[0].match.left" + kIn + "ct saddr of one direction is not supported"},
        Unsupported{"ct_status", match(ct("status"), "\"dying\"", "in") + "," + kAccept,
                    "rule.expr[0].match.right" + kIn +
                        "a status of connections that is not supported: found 'dying', expected snat or dnat"},
        Unsupported{"map_after_a_limit",
                    R"({"limit": {"rate": 1, "per": "second"}}, {"vmap": {"key": )" + kDport +
                        R"(, "data": {"set": [[1, {"drop": null}]]}}})",
                    "rule.expr[1].vmap" + kIn + "a map after a limit, a quota or the like"},
        Unsupported{"notrack", R"({"notrack": null})", "notrack is supported only at hook prerouting"},
        Unsupported{"time", match(meta("time"), "\"10:00\"") + "," + kAccept,
                    "left" + kIn + "meta time is not supported"},
        Unsupported{"set_dscp",
                    R"({"mangle": {"key": {"payload": {"protocol": "ip", "field": "dscp"}}, "value": {"map": 1}}})",
                    "this value of a field is not supported"},
        Unsupported{"fib", match(R"({"fib": {"result": "type", "flags": ["daddr"]}})", "\"local\"") + "," + kAccept,
                    "fib … type local needs the addresses of this host: the parameter `addresses`"},
        Unsupported{"nexthdr", match(payload("ip6", "nexthdr"), "\"tcp\"") + "," + kAccept,
                    "ip6 nexthdr is not supported"},
        Unsupported{"exthdr", match(R"({"exthdr": {"name": "mh"}})", "true") + "," + kAccept,
                    "exthdr mh is not supported"},
        Unsupported{"first_fragment",
                    match(R"({"exthdr": {"name": "frag", "field": "frag-off"}})", "0") + "," + kAccept,
                    "no later fragment is not supported"},
        Unsupported{"fragment_offset",
                    match(R"({"exthdr": {"name": "frag", "field": "frag-off"}})", "7") + "," + kAccept,
                    "a fragment offset other than 0 is not supported"},
        Unsupported{"th_alone", match(payload("th", "dport"), "53") + "," + kAccept, "th for protocols without ports"},
        Unsupported{"th_of_icmp",
                    match(meta("l4proto"), R"({"set": ["tcp", "icmp"]})") + "," + match(payload("th", "dport"), "53") +
                        "," + kAccept,
                    "th for protocols without ports"},
        Unsupported{"mask", match(R"({"&": [)" + payload("ip", "length") + R"(, 255]})", "1") + "," + kAccept,
                    "a mask of this key is not supported"},
        Unsupported{"fib_oif",
                    match(R"({"fib": {"result": "oif", "flags": ["saddr", "iif"]}})", "false") + "," + kAccept,
                    "fib … oif needs the addresses of this host: the parameter `addresses`"},
        Unsupported{"ct_bytes", match(ct("bytes"), "1", ">") + "," + kAccept, "packets of connections are not counted"},
        Unsupported{"hours_over_midnight", match(meta("hour"), R"({"range": ["20:00", "06:00"]})") + "," + kAccept,
                    "hours over midnight"},
        Unsupported{"after_a_mark_by_map",
                    R"({"mangle": {"key": {"meta": {"key": "mark"}}, "value": {"jhash": {"mod": 2, "expr": )" + kSaddr +
                        R"(}}}}, {"accept": null})",
                    "a statement after a mark by a map is not supported"},
        Unsupported{"raw", match(R"({"payload": {"base": "th", "offset": 0, "len": 8}})", "1") + "," + kAccept,
                    "a raw payload expression"},
        Unsupported{
            "not_a_concatenation",
            match(R"({"concat": [)" + kSaddr + "," + kDport + "]}", R"({"set": [{"concat": ["1.1.1.1", 1]}]})", "!=") +
                "," + kAccept,
            "a concatenation is supported with == only"},
        Unsupported{"timeout",
                    match(kSaddr, R"({"set": [{"elem": {"val": "1.1.1.1", "timeout": 5}}]})") + "," + kAccept,
                    "rule.expr[0].match.right.set[0]" + kIn + "an element with a timeout"},
        Unsupported{"overlap",
                    R"({"vmap": {"key": )" + kDport +
                        R"(, "data": {"set": [[{"range": [1, 9]}, {"drop": null}], [9, {"accept": null}]]}}})",
                    "elements that overlap and have different verdicts"},
        Unsupported{"overlapping_concatenations",
                    R"({"vmap": {"key": {"concat": [)" + kSaddr + "," + kDport +
                        R"(]}, "data": {"set": [[{"concat": ["1.1.1.1", 1]}, {"drop": null}],
                       [{"concat": [{"prefix": {"addr": "1.0.0.0", "len": 8}}, 1]}, {"accept": null}]]}}})",
                    "elements that overlap and have different verdicts"},
        Unsupported{"operator", match(payload("icmp", "type"), "8", "in") + "," + kAccept,
                    "an operator that is not supported here: found 'in'"},
        Unsupported{"fib_in_words",
                    match(R"({"fib": {"result": "type", "flags": ["saddr", "iif"]}})", "\"local\"") + "," + kAccept,
                    "this use of fib is not supported: found 'fib saddr . iif type'"},
        Unsupported{"queue", R"({"queue": null})", "queue is not supported"},
        Unsupported{"text", R"("jump {\n drop }")",
                    "rule.expr[0]" + kIn + "a statement that nft does not print as JSON"},
        Unsupported{
            "xt", R"({"xt": {"type": "match", "name": "conntrack"}}, )" + kAccept,
            "rule.expr[0].xt" + kIn + "xt \"conntrack\" is not supported, expected the output of iptables-save"},
        Unsupported{"ether_type", match(meta("protocol"), "56710") + "," + kAccept, "an Ethernet type as a number"},
        Unsupported{"nat", R"({"masquerade": null})", "masquerade is not supported"},
        Unsupported{"future", R"({"match": {"op": "==", "left": {"newer": {}}, "right": 1}}, {"accept": null})",
                    "newer is not supported"}),
    [](const auto& one) { return std::string(one.param.name); });

TEST(NftablesReader, UnsupportedSetsAreReportedWhereTheyAreUsed) {
  const auto with = [](const std::string& type, const std::string& rest) {
    return unsupported_of(inet().set("s", type, rest).rule("forward", match(kSaddr, "\"@s\"") + "," + kAccept));
  };
  const std::string place =
      "rules: nftables[2].rule.expr[0].match.right (table inet t, chain forward, rule handle 1): set @s is not "
      "supported: ";
  EXPECT_EQ(with("\"ipv4_addr\"", R"(, "flags": ["timeout"])"), "");
  EXPECT_EQ(with("\"ipv4_addr\"", R"(, "flags": "dynamic")"), "");
  EXPECT_THAT(
      with("\"ipv4_addr\"", R"(, "flags": ["timeout", "interval"], "elem": [{"range": ["1.1.1.1", "1.1.1.9"]}])"),
      HasSubstr("a range in a set that changes is not supported"));
  EXPECT_THAT(with("\"ipv4_addr\"", R"(, "flags": "dynamic", "stmt": [{"counter": null}])"),
              HasSubstr("a set with statements is not supported"));
  EXPECT_EQ(with("\"mark\"", ""), place + "elements of this type are not supported: found '\"mark\"'");
  EXPECT_THAT(rules_of(inet().set("s", "\"mark\"", "").rule("forward", kAccept)).entries, ::testing::SizeIs(1))
      << "unused";
}

TEST(NftablesReader, SetsThatRulesChangeAtOtherHooksAreUnsupported) {
  // In any rule, before or after the use.
  const std::string text = inet()
                               .base("inet", "input", 0, "accept", "filter", "input")
                               .set("s", "\"ipv4_addr\"", R"(, "size": 10)")
                               .rule("forward", match(kSaddr, "\"@s\"") + "," + kAccept)
                               .rule("input", R"({"set": {"op": "add", "elem": )" + kSaddr + R"(, "set": "@s"}})");
  EXPECT_EQ(unsupported_of(text),
            "rules: nftables[3].rule (table inet t, chain forward, rule handle 1): set @s is not supported: rules that "
            "packets do not pass here change its elements");
}

TEST(NftablesReader, TestsTheStateOfConnections) {
  using classify::ConnectionState;
  const classify::Ruleset rules = rules_of(
      inet()
          .rule("forward", match(ct("state"), R"(["established", "related"])", "in") + "," + kAccept)
          .rule("forward", match(ct("state"), "\"invalid\"", "in") + "," + kDrop)
          .rule("forward", match(ct("state"), "\"untracked\"", "!=") + "," + match(kDport, "80") + "," + kAccept));
  EXPECT_TRUE(rules.tests_connections());
  const auto of = [&](ConnectionState state, const char* packet = kWeb) {
    classify::Key key = tuple(packet);
    key.connection = classify::number_of({state});
    return decide(rules, key);
  };
  EXPECT_EQ(of(ConnectionState::begins), "2 accept");
  EXPECT_EQ(of(ConnectionState::begins, kSsh), "- drop");
  EXPECT_EQ(of(ConnectionState::established, kSsh), "0 accept");
  EXPECT_EQ(of(ConnectionState::related, kSsh), "0 accept");
  EXPECT_EQ(of(ConnectionState::invalid), "1 drop");
  EXPECT_EQ(of(ConnectionState::untracked), "- drop");
  EXPECT_FALSE(rules_of(inet().rule("forward", kAccept)).tests_connections());
}

TEST(NftablesReader, ComparesSeveralStatesAsOneValueWhichNoConnectionHas) {
  for (const char* several : {R"(["established", "new"])", R"({"|": ["established", "new"]})"}) {
    EXPECT_EQ(decide(rules_of(inet().rule("forward", match(ct("state"), several, "!=") + "," + kAccept)), tuple(kWeb)),
              "0 accept");
    EXPECT_EQ(decide(rules_of(inet().rule("forward", match(ct("state"), several) + "," + kAccept)), tuple(kWeb)),
              "- drop");
  }
  EXPECT_THAT(unsupported_of(
                  inet().rule("forward", match(ct("state"), R"({"|": ["established", "new"]})", "in") + "," + kAccept)),
              HasSubstr("an operator that is not supported here: found 'in'"));
}

TEST(NftablesReader, MapsConnectionsToVerdicts) {
  const classify::Ruleset rules = rules_of(inet().rule(
      "forward",
      R"({"vmap": {"key": {"ct": {"key": "state"}}, "data": {"set": [["established", {"accept": null}], ["invalid", {"drop": null}]]}}})"));
  for (const auto& [state, expected] : {std::pair(classify::ConnectionState::established, "0 accept"),
                                        std::pair(classify::ConnectionState::invalid, "0 drop"),
                                        std::pair(classify::ConnectionState::begins, "- drop")}) {
    classify::Key key = tuple(kWeb);
    key.connection = classify::number_of({state});
    EXPECT_THAT(decide(rules, key), HasSubstr(expected + 2));
  }
}

TEST(NftablesReader, PacketsWithoutAConnectionHaveNoDirectionAndNoTranslation) {
  const classify::Ruleset rules = rules_of(
      inet()
          .rule("forward", match(ct("direction"), "\"reply\"") + "," + match(kDport, "80") + "," + kAccept)
          .rule("forward", match(ct("direction"), "\"reply\"", "!=") + "," + match(kDport, "80") + "," + kAccept)
          .rule("forward", match(ct("status"), R"(["snat", "dnat"])", "in") + "," + kAccept)
          .rule("forward", match(ct("status"), "\"dnat\"", "!") + "," + match(kDport, "22") + "," + kDrop));
  using classify::ConnectionState;
  const auto of = [&](const classify::Connection& connection, const char* packet) {
    classify::Key key = tuple(packet);
    key.connection = classify::number_of(connection);
    return decide(rules, key);
  };
  EXPECT_EQ(of({ConnectionState::established, true}, kWeb), "0 accept");
  EXPECT_EQ(of({ConnectionState::established, false}, kWeb), "1 accept");
  EXPECT_EQ(of({ConnectionState::invalid, true}, kWeb), "- drop");
  EXPECT_EQ(of({ConnectionState::untracked, false}, kWeb), "- drop");
  EXPECT_EQ(of({ConnectionState::begins, false, true, false}, kSsh), "2 accept");
  EXPECT_EQ(of({ConnectionState::begins, false, false, true}, kSsh), "2 accept");
  EXPECT_EQ(of({ConnectionState::begins, false, false, false}, kSsh), "3 drop");
  EXPECT_EQ(of({ConnectionState::invalid, false, true, true}, kSsh), "- drop");
}

TEST(NftablesReader, UnknownFlagsOfTablesAreUnsupported) {
  EXPECT_EQ(unsupported_of(inet().add(R"({"table": {"family": "ip", "name": "t", "flags": "t"}})")),
            "rules: nftables[1].table (table ip t): a table with this flag is not supported: found '\"t\"', expected "
            "\"dormant\", \"owner\" or \"persist\"");
}

TEST(NftablesReader, OtherChainsThatForwardedPacketsPassAreRefusedIfTheyMatter) {
  const auto with = [](const std::string& family, const std::string& type, const std::string& hook,
                       const std::string& policy, const std::string& statements) {
    Ruleset rules = inet();
    rules.base(family, "other", 0, policy, type, hook);
    if (!statements.empty()) rules.rule("other", statements, family);
    return unsupported_of(rules);
  };
  const std::string harmless = match(ct("state"), "\"new\"") + "," + kAccept;
  EXPECT_EQ(
      with("ip", "filter", "prerouting", "accept", kDrop),
      "rules: nftables[2].rule (table ip t, chain other, rule handle 1): chain other of type filter at hook "
      "prerouting is not supported: it can drop or change packets that are forwarded: expected chains of type filter "
      "at hook forward");
  EXPECT_THAT(with("ip", "filter", "prerouting", "accept", R"({"notrack": null})"),
              HasSubstr("type filter at hook prerouting is not supported"));
  EXPECT_THAT(with("ip", "filter", "postrouting", "drop", ""),
              HasSubstr("nftables[1].chain (table ip t, chain other): chain other of type filter"));
  EXPECT_THAT(with("ip", "nat", "postrouting", "accept", R"({"masquerade": null})"),
              HasSubstr("type nat at hook postrouting is not supported"));
  EXPECT_THAT(with("netdev", "filter", "ingress", "accept", kDrop), HasSubstr("at hook ingress is not supported"));
  EXPECT_THAT(with("inet", "filter", "ingress", "accept", kDrop), HasSubstr("at hook ingress is not supported"));
  EXPECT_EQ(with("bridge", "filter", "forward", "accept", kDrop), "") << "of frames that are not routed";
  EXPECT_THAT(with("bridge", "filter", "input", "accept", R"({"mangle": {"key": {"payload": {}}, "value": 1}})"),
              HasSubstr("at hook input is not supported"));
  EXPECT_EQ(with("ip", "filter", "prerouting", "accept", harmless), "");
  EXPECT_EQ(with("ip", "nat", "postrouting", "accept", ""), "");
  EXPECT_EQ(with("inet", "filter", "input", "drop", kDrop), "");
  EXPECT_EQ(with("ip", "nat", "output", "accept", R"({"dnat": {"addr": "1.1.1.1"}})"), "");
}

TEST(NftablesReader, FollowsJumpsOfOtherChains) {
  const Ruleset rules = inet()
                            .base("inet", "raw", -300, "accept", "filter", "prerouting")
                            .chain("helper")
                            .rule("raw", jump("helper"))
                            .rule("helper", kDrop);
  EXPECT_THAT(unsupported_of(rules),
              HasSubstr("chain helper, rule handle 2): chain raw of type filter at hook prerouting"));
}

TEST(NftablesReader, ChainsThatFilterNoIpPacketsAreNoted) {
  const auto read = read_rules(Ruleset()
                                   .add(R"({"table": {"family": "ip", "name": "t", "handle": 1, "flags": "dormant"}})")
                                   .base("ip", "asleep", 0, "drop")
                                   .base("arp", "arps", 0, "drop", "filter", "input")
                                   .base("inet", "forward", 0, "accept")
                                   .text(),
                               "rules", {});
  ASSERT_TRUE(read) << to_string(read.error());
  EXPECT_THAT(read->unsupported, IsEmpty());
  EXPECT_THAT(to_string(read->harmless), HasSubstr("chain asleep): the table is dormant"));
  EXPECT_THAT(to_string(read->harmless), HasSubstr("chain arps): ARP is not supported"));
  EXPECT_EQ(decide(read->value, tuple(kWeb)), "- accept");
}

TEST(NftablesReader, SomeExtensionsOfIptablesAreSupported) {
  const auto xt = [](const std::string& type, const std::string& name) {
    return R"({"xt": {"type": ")" + type + R"(", "name": ")" + name + "\"}}";
  };
  const auto read = read_rules(inet()
                                   .rule("forward", xt("target", "LOG"))
                                   .rule("forward", match(kDport, "80") + "," + xt("match", "comment") + "," + kAccept)
                                   .rule("forward", match(kDport, "22") + "," + xt("target", "REJECT"))
                                   .text(),
                               "rules", {});
  ASSERT_TRUE(read) << to_string(read.error());
  EXPECT_THAT(read->unsupported, IsEmpty());
  EXPECT_THAT(to_string(read->harmless),
              HasSubstr("rule handle 1): log without `packet_log` in `outputs` is not supported"));
  EXPECT_EQ(decide(read->value, tuple(kWeb)), "1 accept");
  EXPECT_EQ(decide(read->value, tuple(kSsh)), "2 reject");
}

TEST(NftablesReader, UnreachableRulesAreNotReported) {
  EXPECT_EQ(decide(rules_of(inet().chain("unused").rule("unused", R"({"queue": null})").rule("forward", kAccept)),
                   tuple(kWeb)),
            "1 accept");
}

/// Texts that are refused with an error.
struct Wrong {
  const char* name;
  std::string text, error;
};
class WrongNftables : public ::testing::TestWithParam<Wrong> {};

TEST_P(WrongNftables, IsRefused) { EXPECT_THAT(errors_of(GetParam().text), HasSubstr(GetParam().error)); }

std::string nested(std::size_t depth) { return std::string(depth, '[') + std::string(depth, ']'); }

INSTANTIATE_TEST_SUITE_P(
    Nftables, WrongNftables,
    ::testing::Values(
        Wrong{"truncated", inet().text().substr(0, 80), "rules:1:80: the file ends in the middle of a value"},
        Wrong{"garbage", "{\"nftables\": [\n  nonsense]}", "rules:2:4: not valid JSON"},
        Wrong{"text_after_it", inet().text() + "{}", "not valid JSON"},
        Wrong{"other_object", "{\"other\": []}", "wrong member of the outermost object: found 'other'"},
        Wrong{"no_array", "{\"nftables\": {}}", "not a rule set of nftables"},
        Wrong{"two_arrays", "{\"nftables\": [], \"nftables\": []}", "wrong member of the outermost object"},
        Wrong{"empty", "{\"nftables\": []}", "no chain that filters forwarded packets"},
        Wrong{"nothing", "{}", "no chain that filters forwarded packets"},
        Wrong{"no_object", "{\"nftables\": [7]}", "nftables[0]: not an object: found '7'"},
        Wrong{"two_members", R"({"nftables": [{"a": {}, "b": {}}]})", "nftables[0]: object of 2 members"},
        Wrong{"key_twice", R"({"nftables": [{"chain": {"name": "a", "name": "b"}}]})",
              "nftables[0]: key given twice: found 'name'"},
        Wrong{"deep", "{\"nftables\": [{\"rule\": " + nested(70) + "}]}", "nftables[0]: values nested too deeply"},
        Wrong{"version", inet().add(R"({"metainfo": {"json_schema_version": 2}})"),
              "unknown version of nft's JSON: found '2'"},
        Wrong{"wrong_type", Ruleset().add(R"({"chain": {"family": 3, "table": "t", "name": "n"}})"),
              "nftables[0].chain: wrong or missing \"family\": found '3'"},
        Wrong{"no_priority",
              Ruleset().add(
                  R"({"chain": {"family": "ip", "table": "t", "name": "n", "type": "filter", "hook": "forward"}})"),
              "wrong or missing \"prio\""},
        Wrong{"policy", Ruleset().base("ip", "c", 0, "maybe"), "unknown policy: found 'maybe'"},
        Wrong{"chain_twice", inet().chain("c").chain("c"), "nftables[2].chain: chain declared twice"},
        Wrong{"unknown_chain", inet().rule("nowhere", kAccept),
              "nftables[1].rule: rule of an unknown chain: found 'nowhere'"},
        Wrong{"unknown_jump", inet().rule("forward", jump("nowhere")),
              "nftables[1].rule (table inet t, chain forward, rule handle 1): jump to an unknown chain: found 'inet t "
              "nowhere'"},
        Wrong{"jump_to_base", inet().rule("forward", jump("forward")), "jump to a base chain"},
        Wrong{"loop", inet().chain("a").chain("b").rule("forward", jump("a")).rule("a", jump("b")).rule("b", jump("a")),
              "nftables[5].rule (table inet t, chain b, rule handle 3): a chain calls itself: found 'inet t a', "
              "expected no loops"},
        Wrong{"port", inet().rule("forward", match(kDport, "70000") + "," + kAccept),
              "nftables[1].rule.expr[0].match.right (table inet t, chain forward, rule handle 1): wrong value: found "
              "'70000', expected a port"},
        Wrong{"address", inet().rule("forward", match(kSaddr, "\"10.0.0.300\"") + "," + kAccept),
              "wrong value: found '10.0.0.300', expected an IPv4 address"},
        Wrong{"prefix",
              inet().rule("forward", match(kSaddr, R"({"prefix": {"addr": "10.0.0.0", "len": 33}})") + "," + kAccept),
              "wrong value"},
        Wrong{"range", inet().rule("forward", match(kDport, R"({"range": [9, 1]})") + "," + kAccept), "wrong value"},
        Wrong{"type_name", inet().rule("forward", match(payload("icmp", "type"), "\"echo\"") + "," + kAccept),
              "found 'echo', expected an ICMP type"},
        Wrong{"flag", inet().rule("forward", match(payload("tcp", "flags"), R"(["syn", "sin"])", "in") + "," + kAccept),
              "expected TCP flags"},
        Wrong{"match", inet().rule("forward", R"({"match": {"op": "=="}})"), "wrong match"},
        Wrong{"statement", inet().rule("forward", "7"),
              "rule.expr[0] (table inet t, chain forward, rule handle 1): wrong statement"},
        Wrong{"two_verdicts", inet().rule("forward", kAccept + "," + kDrop),
              "rule.expr[1] (table inet t, chain forward, rule handle 1): second verdict in a rule"},
        Wrong{"unknown_set", inet().rule("forward", match(kSaddr, "\"@s\"") + "," + kAccept),
              "unknown set: found '@s'"},
        Wrong{"set_of_another_type",
              inet().set("s", "\"inet_service\"", "").rule("forward", match(kSaddr, "\"@s\"") + "," + kAccept),
              "not a set of values like the left side"},
        Wrong{"element", inet().set("s", "\"ipv4_addr\"", R"(, "elem": ["1.1.1.1", 7])"),
              "nftables[1].set.elem[1] (table inet t, set s): wrong value: found '7'"},
        Wrong{"short_concatenation",
              inet().set("s", R"(["ipv4_addr", "inet_service"])", R"(, "elem": [{"concat": ["1.1.1.1"]}])"),
              "nftables[1].set.elem[0] (table inet t, set s): wrong element of a set: expected a concatenation of 2 "
              "values"},
        Wrong{"no_forward_chain", Ruleset().base("inet", "input", 0, "drop", "filter", "input"),
              "no chain that filters forwarded packets"}),
    [](const auto& one) { return std::string(one.param.name); });

TEST(NftablesReader, ReadsALargeSet) {
  std::string elements;
  for (unsigned i = 0; i < 100'000; ++i)
    elements +=
        fmt::format("{}\"{}.{}.{}.{}\"", i == 0 ? "" : ",", i >> 24 & 255, i >> 15 & 255, i >> 7 & 255, i << 1 & 255);
  const classify::Ruleset rules = rules_of(inet()
                                               .set("s", "\"ipv4_addr\"", ", \"elem\": [" + elements + "]")
                                               .rule("forward", match(kSaddr, "\"@s\"") + "," + kAccept));
  EXPECT_EQ(rules.entries.size(), 100'000U);
  const auto classifier = classify::make_classifier(classify::Engine::bitvector, rules);
  ASSERT_TRUE(classifier);
  for (const auto& [source, found] :
       {std::pair{"0.0.0.4", true}, {"0.0.0.5", false}, {"0.3.13.62", true}, {"0.3.13.64", false}}) {
    const classify::Key key = tuple(std::string(source) + " 1.1.1.1 tcp 1 1");
    std::uint32_t entry = 0;
    (*classifier)->classify({&key, 1}, &entry);
    EXPECT_EQ(entry != classify::kNoEntry, found) << source;
  }
}

TEST(NftablesReader, TooMuchIsRefused) {
  ReadOptions options;
  options.most_rules = 100;
  std::string elements = "1";
  for (int i = 0; i < 2000; ++i) elements += fmt::format(",{}", 2 * i + 3);
  const std::string set = "{\"set\": [" + elements + "]}";
  EXPECT_THAT(
      errors_of(inet().rule("forward", match(kDport, set) + "," + kAccept), options),
      HasSubstr(
          "too many values in sets and rules: found more than 1,600, expected at most 1,600 (most_rules raises it)"));
  // Two sets of addresses multiply.
  std::string addresses = "\"1.1.1.1\"";
  for (int i = 0; i < 10; ++i) addresses += fmt::format(",\"1.1.2.{}\"", 2 * i);
  const std::string both = match(kSaddr, "{\"set\": [" + addresses + "]}") + "," +
                           match(payload("ip", "daddr"), "{\"set\": [" + addresses + "]}");
  EXPECT_THAT(
      errors_of(inet().rule("forward", both + "," + kAccept), options),
      HasSubstr("nftables[1].rule (table inet t, chain forward, rule handle 1): too many rules: found more than 100"));
  Ruleset many = inet();
  for (int i = 0; i < 100; ++i) many.rule("forward", kAccept);
  EXPECT_THAT(errors_of(many, options), HasSubstr("nftables[100]: too many rules"));
  EXPECT_THAT(errors_of(many), Not(HasSubstr("too many rules")));
  // Each chain calls the next twice.
  Ruleset doubling = inet();
  for (int i = 0; i < 30; ++i) doubling.chain(fmt::format("c{}", i));
  doubling.rule("forward", jump("c0"));
  for (int i = 0; i + 1 < 30; ++i) {
    for (int twice = 0; twice < 2; ++twice) doubling.rule(fmt::format("c{}", i), jump(fmt::format("c{}", i + 1)));
  }
  EXPECT_THAT(errors_of(doubling), HasSubstr("too many rules after expanding the chains called here"));
}

TEST(NftablesReader, BoundsTheValuesOfAnObject) {
  ReadOptions options;
  options.most_rules = 1;
  std::string zeros = "0";
  for (int i = 0; i < 110'000; ++i) zeros += ",0";
  EXPECT_THAT(errors_of("{\"nftables\": [{\"rule\": [" + zeros + "]}]}", options),
              HasSubstr("nftables[0]: too many values in an object: found more than 100,016"));
}

}  // namespace
}  // namespace penstock::firewall::nftables
