// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Helpers for tests that make rules and keys easy to read.

#pragma once

#include <gtest/gtest.h>

#include <array>
#include <string>
#include <string_view>

#include "classify/classifier.h"
#include "nf/firewall/rule_reader.h"
#include "nf/firewall/steps/step_runner.h"
#include "nf/firewall/tuple_reader.h"

namespace penstock::firewall {

inline constexpr std::array kEngines{classify::Engine::linear, classify::Engine::bitvector, classify::Engine::rfc};

/// "10.0.0.1 10.0.0.2 tcp 1024 80"
inline classify::Key tuple(std::string_view text) {
  const auto keys = read_tuples(text, "tuple");
  EXPECT_TRUE(keys) << to_string(keys.error());
  return keys ? keys->front() : classify::Key{};
}

inline classify::Key with_detail(classify::Key key, std::uint32_t detail) {
  key.kind = key.protocol() << classify::kKindDetailBits | detail;
  return key;
}

/// The key of a later fragment of the packet: no ports, no detail.
inline classify::Key later_fragment(classify::Key key) {
  key.kind = classify::kKindNoDetail + key.protocol();
  key.source_port = key.destination_port = classify::kNoTransportPort;
  key.later_fragment = true;
  return key;
}

inline classify::Key through(classify::Key key, PortIndex in, PortIndex out = kNoPort) {
  key.in_port = in;
  key.out_port = out;
  return key;
}

inline classify::Ruleset rules_of(std::string_view text, const ReadOptions& options = {}) {
  auto read = read_rules(text, "rules", options);
  EXPECT_TRUE(read) << to_string(read.error());
  if (!read) return {};
  EXPECT_TRUE(read->unsupported.empty()) << to_string(read->unsupported);
  return std::move(read->value);
}

/// "3 accept", "- drop": the result of all engines, which must agree.
inline std::string decide(const classify::Ruleset& rules, const classify::Key& key) {
  std::string answer;
  for (const classify::Engine engine : kEngines) {
    if (rules.has_steps() && engine == classify::Engine::rfc) continue;
    const auto classifier = classify::make_classifier(engine, rules);
    std::uint32_t entry = 0;
    (*classifier)->classify({&key, 1}, &entry);
    entry = TupleSteps(rules, **classifier).decide(key, entry);
    const std::string rule = entry == classify::kNoEntry ? "-" : std::to_string(rules.entries[entry].rule);
    const std::string own = rule + " " + std::string(name(rules.target(entry, key.family)));
    if (answer.empty()) answer = own;
    EXPECT_EQ(own, answer) << (*classifier)->name();
  }
  return answer;
}

/// The errors of a text that must be refused.
inline std::string errors_of(std::string_view text, const ReadOptions& options = {}) {
  const auto read = read_rules(text, "rules", options);
  return read ? "read without an error" : to_string(read.error());
}

/// A rule in FORWARD (the chain `own` is declared as well) that iptables or the kernel refuses, and the error of our
/// reader.
struct RefusedRule {
  std::string_view rule, error;
};
inline constexpr auto kRefusedRules = std::to_array<RefusedRule>({
    {"--dport 80 -j ACCEPT",
     "match needs a different protocol than the rule's: found '--dport', expected -p tcp, udp, udplite, sctp "
     "or dccp in the rule"},
    {"-p icmp --sport 80 -j ACCEPT", "than the rule's: found '--sport'"},
    {"-p all --dport 80 -j ACCEPT", "than the rule's: found '--dport'"},
    {"! -p tcp --dport 80 -j ACCEPT", "than the rule's: found '--dport'"},
    {"-m multiport --dports 80 -j ACCEPT", "than the rule's: found 'multiport'"},
    {"! -p udp -m multiport --ports 80 -j ACCEPT", "than the rule's: found 'multiport'"},
    {"-m tcp -j ACCEPT", "than the rule's: found 'tcp', expected -p tcp in the rule"},
    {"! -p tcp -m tcp -j ACCEPT", "than the rule's: found 'tcp'"},
    {"-p udp -m tcp --dport 80 -j ACCEPT", "than the rule's: found 'tcp'"},
    {"-p udp --syn -j ACCEPT", "than the rule's: found '--syn'"},
    {"-m icmp --icmp-type 8 -j ACCEPT", "than the rule's: found 'icmp', expected -p icmp in the rule"},
    {"-p tcp --icmp-type 8 -j ACCEPT", "than the rule's: found '--icmp-type'"},
    {"-s 1.1.1.1 -s 2.2.2.2 -j ACCEPT", "option given twice: found '-s', expected once in a rule"},
    {"-s 0.0.0.0/0 --source 2.2.2.2 -j ACCEPT", "given twice: found '--source'"},
    {"-d 1.1.1.1 ! -d 2.2.2.2 -j ACCEPT", "given twice: found '-d'"},
    {"-p tcp -p udp -j ACCEPT", "given twice: found '-p'"},
    {"-i lan -i wan -j ACCEPT", "given twice: found '-i'"},
    {"-o lan -o wan -j ACCEPT", "given twice: found '-o'"},
    {"-f ! -f -j ACCEPT", "given twice: found '-f'"},
    {"-j ACCEPT -j DROP", "given twice: found '-j'"},
    {"-j ACCEPT -g own", "given twice: found '-g'"},
    {"-A FORWARD -j ACCEPT", "given twice: found '-A'"},
    {"-c 1 2 -c 3 4 -j ACCEPT", "given twice: found '-c'"},
    {"-p tcp --dport 1 --dport 2 -j ACCEPT", "given twice: found '--dport'"},
    {"-p tcp --syn --tcp-flags ACK ACK -j ACCEPT", "given twice: found '--tcp-flags'"},
    {"-p icmp --icmp-type 8 --icmp-type 0 -j ACCEPT", "given twice: found '--icmp-type'"},
    {"-p tcp -m multiport --dports 1 --sports 2 -j ACCEPT", "given twice: found '--sports'"},
    {"-m iprange --src-range 1.1.1.1-1.1.1.2 --src-range 1.1.1.1-1.1.1.3 -j ACCEPT",
     "given twice: found '--src-range'"},
    {"-p tcp -m multiport --dports 1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16 -j ACCEPT",
     "too many ports: found '1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16', expected at most 15, where a range counts as "
     "two"},
    {"-p tcp -m multiport --ports 1:2,3:4,5:6,7:8,9:10,11:12,13:14,15:16 -j ACCEPT", "too many ports"},
    {"-j nowhere",
     "unknown target: neither a target of iptables nor a chain of the table: found 'nowhere', expected a target, or a "
     "line :CHAIN - before it"},
    {"-g nowhere", "goto to a chain that the table does not declare: found 'nowhere'"},
    {"-g LOG", "goto to a chain that the table does not declare: found 'LOG'"},
    {"-j INPUT", "jump to a built-in chain: found 'INPUT', expected a user-defined chain"},
    {"! -j ACCEPT", "option cannot be negated: found '-j', expected the option without !"},
    {"-p tcp ! -m tcp -j ACCEPT", "cannot be negated: found '-m'"},
    {"-m conntrack --ctstate NEW --ctstate RELATED -j ACCEPT", "given twice: found '--ctstate'"},
    {"-m conntrack --ctstate OLD -j ACCEPT",
     "unknown connection state: found 'OLD', expected INVALID, NEW, ESTABLISHED, RELATED, UNTRACKED, SNAT or DNAT, "
     "separated by commas"},
    {"-m conntrack --ctdir BOTH -j ACCEPT", "unknown direction: found 'BOTH', expected ORIGINAL or REPLY"},
    {"-m comment ! --comment a -j ACCEPT", "cannot be negated: found '--comment'"},
    {"! ! -s 1.1.1.1 -j ACCEPT", "! without an option: found '!'"},
    {"-j ACCEPT !", "! without an option: found '!'"},
});

/// Rules that look similar, and that iptables accepts.
inline constexpr auto kTakenRules = std::to_array<std::string_view>({
    "-m tcp --dport 80 -p tcp -j ACCEPT",
    "-p 6 -m tcp --dport 80 -j ACCEPT",
    "-p sctp --dport 80 -j ACCEPT",
    "-p udplite -m multiport --dports 80 -j ACCEPT",
    "-p tcp -m tcp --dport 1 -m tcp --dport 2 -j ACCEPT",
    "-p tcp -m multiport --dports 1 -m multiport --sports 2 -j ACCEPT",
    "-p tcp -m multiport --dports 1:2,3:4,5:6,7:8,9:10,11:12,13:14,15 -j ACCEPT",
    "-m comment --comment a -m comment --comment -j -j ACCEPT",
    "-m conntrack --ctstate NEW -m conntrack --ctstate RELATED -j ACCEPT",
    "-m conntrack ! --ctstate INVALID,DNAT --ctdir REPLY -j ACCEPT",
    "-m state --state NEW,UNTRACKED -j ACCEPT",
    "-s 1.1.1.1 -d 1.1.1.1 -j own",
    "-p tcp -g own",
    "-c 1 2 -j ACCEPT",
});

/// Lines of the table nat that iptables refuses, and the error of our reader.
inline constexpr auto kRefusedTranslations = std::to_array<RefusedRule>({
    {"-A PREROUTING -j DNAT --to-destination 10.0.0.1:80",
     "a port without a protocol that has ports: found '10.0.0.1:80', expected -p tcp, udp, sctp, dccp or icmp in the "
     "rule"},
    {"-A PREROUTING -p udplite -j DNAT --to-destination 10.0.0.1:80", "a port without a protocol that has ports"},
    {"-A PREROUTING -p gre -j DNAT --to-destination 10.0.0.1:80", "a port without a protocol that has ports"},
    {"-A PREROUTING -j REDIRECT --to-ports 80", "a port without a protocol that has ports"},
    {"-A POSTROUTING -j SNAT --to-source 10.0.0.1:80", "a port without a protocol that has ports"},
    {"-A POSTROUTING -p udplite -j MASQUERADE --to-ports 80", "a port without a protocol that has ports"},
    {"-A PREROUTING -j DNAT --to-destination 10.0.0.1 --to-destination 10.0.0.2",
     "option given twice: found '--to-destination', expected once in a rule"},
    {"-A PREROUTING -j DNAT --to-destination 10.0.0.1 --random --random", "given twice: found '--random'"},
    {"-A PREROUTING -j DNAT --to-destination 10.0.0.1 --persistent --random --persistent",
     "given twice: found '--persistent'"},
    {"-A PREROUTING -p tcp -j REDIRECT --to-ports 80 --to-ports 81", "given twice: found '--to-ports'"},
    {"-A POSTROUTING -p tcp -j MASQUERADE --random-fully --random-fully", "given twice: found '--random-fully'"},
    {"-A POSTROUTING -j SNAT --to-source 10.0.0.1 --to-source 10.0.0.2", "given twice: found '--to-source'"},
    {"-A POSTROUTING -j NETMAP --to 10.0.0.0/24 --to 10.0.1.0/24", "given twice: found '--to'"},
    {"-A PREROUTING -j DNAT --random",
     "a target without what it translates to: found 'DNAT', expected DNAT --to-destination …"},
    {"-A PREROUTING -j DNAT --to-source 10.0.0.1", "a target without what it translates to"},
    {"-A POSTROUTING -j SNAT", "a target without what it translates to"},
    {"-A POSTROUTING -j SNAT --to-destination 10.0.0.1", "a target without what it translates to"},
    {"-A POSTROUTING -j NETMAP", "a target without what it translates to"},
    {"-A POSTROUTING -j MASQUERADE --persistent", "option --persistent is not supported"},
    {"-A POSTROUTING -j MASQUERADE --to-source 10.0.0.1", "option --to-source is not supported"},
    {"-A PREROUTING -p tcp -j REDIRECT --to-ports 80 --persistent", "option --persistent is not supported"},
    {"-A POSTROUTING -j NETMAP --to 10.0.0.0/24 --random", "option --random is not supported"},
    {"-A PREROUTING -j DNAT --to-destination 10.0.0.1 --random-fully", "option --random-fully is not supported"},
    {"-A PREROUTING -j DNAT --to-destination 10.0.0.1 ! --random", "option --random is not supported"},
    {"-A PREROUTING -j SNAT --to-source 10.0.0.1", "wrong target for this chain"},
    {"-A POSTROUTING -j REDIRECT", "wrong target for this chain"},
    {"-A OUTPUT -j SNAT --to-source 10.0.0.1", "wrong target for this chain"},
    {"-A INPUT -j DNAT --to-destination 10.0.0.1", "wrong target for this chain"},
    {"-A INPUT -j MASQUERADE", "wrong target for this chain"},
});

/// Lines that look similar, and that iptables accepts.
inline constexpr auto kTakenTranslations = std::to_array<std::string_view>({
    "-A PREROUTING -p tcp -j DNAT --to-destination 10.0.0.1:80",
    "-A PREROUTING ! -p tcp -j DNAT --to-destination 10.0.0.1:80",
    "-A PREROUTING -p icmp -j DNAT --to-destination 10.0.0.1:80",
    "-A PREROUTING -p dccp -j DNAT --to-destination :80",
    "-A PREROUTING -j DNAT --random --to-destination 10.0.0.1 --persistent",
    "-A PREROUTING -j REDIRECT",
    "-A PREROUTING -p sctp -j REDIRECT --to-ports 80-90 --random",
    "-A POSTROUTING -j SNAT --to-source 10.0.0.1 --random-fully --persistent --random",
    "-A POSTROUTING -p icmp -j MASQUERADE --to-ports 80",
    "-A POSTROUTING -j MASQUERADE --random-fully",
    "-A POSTROUTING -j NETMAP --to 10.0.0.1",
    "-A INPUT -j SNAT --to-source 10.0.0.1",
    "-A OUTPUT -j DNAT --to-destination 10.0.0.1",
    "-A OUTPUT -j REDIRECT",
});

/// A table nat with only this line.
inline std::string nat_table_of(std::string_view line) {
  return "*nat\n:PREROUTING ACCEPT [0:0]\n:INPUT ACCEPT [0:0]\n:POSTROUTING ACCEPT [0:0]\n:OUTPUT ACCEPT [0:0]\n" +
         std::string(line) + "\nCOMMIT\n";
}

/// The options with which such a table is read.
inline ReadOptions nat_options_of(std::string_view line) {
  ReadOptions options;
  options.hook = line.starts_with("-A PREROUTING") ? Hook::prerouting : Hook::postrouting;
  options.translates = true;
  return options;
}

/// Rules of both families and all kinds, for the packets that testing::RandomFrames draws.
inline classify::Ruleset rules_about_random_frames() {
  ReadOptions options;
  options.interfaces.ports = {"lan", "wan", "dmz"};
  return rules_of(
      "# Generated by iptables-save\n*filter\n:FORWARD DROP [0:0]\n:services - [0:0]\n"
      "-A FORWARD -s 10.0.0.240/28 -i dmz -j REJECT\n"
      "-A FORWARD -o wan -j DROP\n"
      "-A FORWARD -s 10.0.0.200/29 -p tcp -m tcp --tcp-flags SYN,ACK ACK -j REJECT\n"
      "-A FORWARD -s 10.0.0.0/26 -p tcp -m tcp --dport 443 -j ACCEPT\n"
      "-A FORWARD -p udp -m udp --dport 53 -j services\n"
      "-A FORWARD -p udp -m udp --dport 53 -j REJECT\n"
      "-A FORWARD -p icmp -m icmp --icmp-type 8 -j ACCEPT\n"
      "-A FORWARD -p sctp -m sctp --dport 36412 -j ACCEPT\n"
      "-A FORWARD -f -j ACCEPT\n"
      "-A FORWARD ! -i lan -p gre -j ACCEPT\n"
      "-A FORWARD -d 192.0.2.128/25 -p esp -j DROP\n"
      "-A FORWARD -p tcp -m multiport --sports 0:9999,20000:29999 -j ACCEPT\n"
      "-A FORWARD -m iprange --src-range 10.0.0.64-10.0.0.99 -j ACCEPT\n"
      "-A services -s 10.0.0.128/25 -j RETURN\n"
      "-A services -d 192.0.2.0/25 -j ACCEPT\n"
      "COMMIT\n"
      "# Generated by ip6tables-save\n*filter\n:FORWARD ACCEPT [0:0]\n"
      "-A FORWARD -s 2001:db8::/121 -p tcp -m tcp --dport 443 -j DROP\n"
      "-A FORWARD -d fe80::/121 -p udp -m udp --dport 53 -j REJECT\n"
      "-A FORWARD -p ipv6-icmp -j DROP\n"
      "-A FORWARD -s 2001:db8::2/128 -i wan -j DROP\n"
      "COMMIT\n",
      options);
}

/// A filter table with only this rule.
inline std::string table_of(std::string_view rule) {
  return "*filter\n:INPUT ACCEPT [0:0]\n:FORWARD DROP [0:0]\n:own - [0:0]\n-A FORWARD " + std::string(rule) +
         "\nCOMMIT\n";
}

}  // namespace penstock::firewall
