// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Compares with the kernel: loads random rules with iptables-restore in a network namespace, reads them back with
// iptables-save, and sends packets through them. The kernel's counters of each rule must equal those of our engines.
// Needs root and iptables; skipped otherwise.

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sched.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <random>

#include "base/text_file.h"
#include "nf/firewall/rules_for_test.h"
#include "packet/ip.h"
#include "packet/transport.h"

namespace penstock::firewall {
namespace {

std::string output_of(const std::string& command) {
  std::string text;
  FILE* pipe = popen((command + " 2>/dev/null").c_str(), "r");
  if (pipe == nullptr) return text;
  char chunk[4096];
  for (std::size_t got = 0; (got = fread(chunk, 1, sizeof chunk, pipe)) > 0;) text.append(chunk, got);
  pclose(pipe);
  return text;
}

bool feed(const std::string& command, const std::string& text) {
  FILE* pipe = popen(command.c_str(), "w");
  if (pipe == nullptr) return false;
  fwrite(text.data(), 1, text.size(), pipe);
  return pclose(pipe) == 0;
}

bool succeeds(const std::string& command) { return std::system((command + " >/dev/null 2>&1").c_str()) == 0; }

/// A packet that the test sends, and its key for the engines.
struct Probe {
  std::string source, destination;
  std::uint8_t protocol = 0;
  std::uint16_t source_port = 0, destination_port = 0;
  std::uint8_t tcp_flags = 0, icmp_type = 0, icmp_code = 0;
  std::uint16_t fragment = 0;  // the field in the IPv4 header

  bool is_icmp() const { return protocol == ip_protocol::kIcmp || protocol == ip_protocol::kIcmpv6; }
  bool has_ports() const { return protocol == ip_protocol::kTcp || protocol == ip_protocol::kUdp; }

  classify::Key key() const {
    classify::Key key = tuple(source + " " + destination + " " + std::to_string(protocol) + " 0 0");
    key.source_port = has_ports() ? source_port : classify::kNoTransportPort;
    key.destination_port = has_ports() ? destination_port : classify::kNoTransportPort;
    const unsigned detail = protocol == ip_protocol::kTcp ? tcp_flags : is_icmp() ? icmp_type << 8U | icmp_code : 0U;
    key = with_detail(key, detail);
    if ((fragment & Ipv4Header::kOffsetMask) != 0) key = later_fragment(key);
    key.out_port = 0;
    return key;
  }

  std::vector<std::uint8_t> bytes() const {
    std::vector<std::uint8_t> transport(20);
    if (has_ports()) {
      auto& tcp = reinterpret_cast<TcpHeader&>(transport[0]);
      tcp.source_port.set(source_port);
      tcp.destination_port.set(destination_port);
      if (protocol == ip_protocol::kTcp) {
        tcp.data_offset = 5 << 4;
        tcp.flags = tcp_flags;
      } else {
        reinterpret_cast<UdpHeader&>(transport[0]).length.set(20);
      }
    } else if (is_icmp()) {
      transport[0] = icmp_type;
      transport[1] = icmp_code;
    }
    std::vector<std::uint8_t> packet;
    if (const auto from = parse_ipv4(source)) {
      Ipv4Header ip{};
      ip.version_ihl = 0x45;
      ip.total_length.set(40);
      ip.fragment.set(fragment);
      ip.ttl = 64;
      ip.protocol = protocol;
      ip.source.set(from->bits);
      ip.destination.set(parse_ipv4(destination)->bits);
      packet.assign(reinterpret_cast<std::uint8_t*>(&ip), reinterpret_cast<std::uint8_t*>(&ip + 1));
    } else {
      Ipv6Header ip{};
      ip.version_class_label.set(6U << 28);
      ip.payload_length.set(20);
      ip.next_header = protocol;
      ip.hop_limit = 64;
      const Ipv6Address a = *parse_ipv6(source), b = *parse_ipv6(destination);
      ip.source[0].set(a.high), ip.source[1].set(a.low);
      ip.destination[0].set(b.high), ip.destination[1].set(b.low);
      packet.assign(reinterpret_cast<std::uint8_t*>(&ip), reinterpret_cast<std::uint8_t*>(&ip + 1));
    }
    packet.insert(packet.end(), transport.begin(), transport.end());
    return packet;
  }
};

/// Draws rules as a user would type them, and packets that match them.
class Draw {
 public:
  Draw(bool ipv6, bool fragments, std::uint64_t seed) : ipv6_(ipv6), fragments_(fragments), random_(seed) {}

  std::string table() {
    std::string text = "*filter\n:OUTPUT DROP [0:0]\n:c1 - [0:0]\n:c2 - [0:0]\n";
    for (int i = 0; i < 30; ++i) text += rule("OUTPUT", {"ACCEPT", "DROP", "c1", "c2"});
    for (int i = 0; i < 12; ++i) text += rule("c1", {"ACCEPT", "DROP", "RETURN", "c2"});
    for (int i = 0; i < 12; ++i) text += rule("c2", {"ACCEPT", "DROP", "RETURN"});
    return text + "COMMIT\n";
  }

  Probe probe() {
    Probe probe;
    probe.source = address();
    probe.destination = address();
    probe.protocol = static_cast<std::uint8_t>(std::stoi(one_of({"6", "6", "17", ipv6_ ? "58" : "1", "47"})));
    probe.source_port = port();
    probe.destination_port = port();
    probe.tcp_flags = static_cast<std::uint8_t>(random_() & 0xff);
    probe.icmp_type = static_cast<std::uint8_t>(std::stoi(one_of({"8", "3", "13", "1"})));
    probe.icmp_code = static_cast<std::uint8_t>(below(3));
    if (fragments_ && below(8) == 0) probe.fragment = one_of({"more", "later"}) == "more" ? 0x2000 : 185;
    return probe;
  }

 private:
  std::size_t below(std::size_t n) { return random_() % n; }
  std::string one_of(const std::vector<std::string>& choices) { return choices[below(choices.size())]; }
  std::string maybe_not() { return below(4) == 0 ? "! " : ""; }
  std::uint16_t port() {
    return static_cast<std::uint16_t>(std::stoi(one_of({"1", "79", "80", "81", "443", "65535"})));
  }

  std::string address() {
    if (ipv6_)
      return one_of({"2001:db8::1", "2001:db8::2", "2001:db8:1::1", "2001:db8:1:ffff::", "2001:db9::", "fd00::1"});
    return one_of({"10.1.2.3", "10.1.2.4", "10.1.255.255", "10.2.0.0", "10.3.0.1", "192.0.2.9"});
  }
  std::string prefix() {
    if (ipv6_) return one_of({"2001:db8::/32", "2001:db8::/64", "2001:db8:1::/48", "2001:db8::1", "fd00::/8", "::/0"});
    return one_of({"10.0.0.0/8", "10.1.0.0/16", "10.1.2.3", "10.2.0.0/15", "192.0.2.0/24", "0.0.0.0/0"});
  }
  std::string address_range() {
    if (ipv6_) return one_of({"2001:db8::1-2001:db8::1", "2001:db8::2-2001:db8:1::1"});
    return one_of({"10.1.2.4-10.2.0.0", "10.1.2.3-10.1.2.3", "10.1.2.0-192.0.2.9"});
  }

  std::string rule(const std::string& chain, const std::vector<std::string>& targets) {
    std::string text = "-A " + chain;
    const auto add = [&](const std::string& words) { text += " " + words; };
    // ::/0 and 0.0.0.0/0 cannot be negated.
    if (below(3) == 0) {
      const std::string source = prefix();
      add((source.ends_with("/0") ? "" : maybe_not()) + "-s " + source);
    }
    if (below(3) == 0) add("-d " + prefix());
    if (below(8) == 0) add(maybe_not() + "-o " + one_of({"d0", "d+", "lo"}));
    if (!ipv6_ && below(10) == 0) add(maybe_not() + "-f");
    if (below(6) == 0) add("-m iprange " + maybe_not() + one_of({"--src-range ", "--dst-range "}) + address_range());
    add_protocol(text);
    const std::string target = one_of(targets);
    const bool may_go = target == "c2" && below(2) == 0;
    return text + (may_go ? " -g " : " -j ") + target + "\n";
  }

  void add_protocol(std::string& text) {
    const auto ports = [&] { return one_of({"1", "80", "79:81", "443", "80:65535", "0:80"}); };
    switch (below(8)) {
      case 0: text += " -p tcp -m tcp " + maybe_not() + one_of({"--sport ", "--dport "}) + ports(); break;
      case 1: text += " -p udp -m udp " + maybe_not() + one_of({"--sport ", "--dport "}) + ports(); break;
      case 2:
        text += one_of({" -p tcp", " -p udp"}) + " -m multiport " + maybe_not() +
                one_of({"--sports ", "--dports ", "--ports "}) + one_of({"1,443", "80,443:65535", "79"});
        break;
      case 3:
        text += " -p tcp -m tcp " + maybe_not() + "--tcp-flags " +
                one_of({"SYN,ACK SYN", "FIN,SYN,RST,ACK SYN", "ALL NONE", "FIN FIN", "RST,PSH NONE"});
        break;
      case 4:
        text += (ipv6_ ? " -p ipv6-icmp -m icmp6 " : " -p icmp -m icmp ") + maybe_not() +
                (ipv6_ ? "--icmpv6-type " : "--icmp-type ") + one_of({"8", "3/1", "1/2", "13"});
        break;
      case 5: text += " " + maybe_not() + "-p " + one_of({"tcp", "udp", "47", ipv6_ ? "ipv6-icmp" : "icmp"}); break;
      default: break;
    }
  }

  bool ipv6_;
  bool fragments_;
  std::mt19937_64 random_;
};

struct Variant {
  const char* name;
  const char* command;  // iptables-legacy: its -save and -restore are beside it
  bool ipv6;
  bool fragments;  // nf_tables tests the payload of later fragments as ports, which iptables never did
};

class Kernel : public ::testing::TestWithParam<Variant> {
 protected:
  void SetUp() override {
    if (geteuid() != 0) GTEST_SKIP() << "needs root, for a network namespace";
    if (!succeeds("command -v " + tool("-save"))) GTEST_SKIP() << tool("-save") << " is not installed";
    if (unshare(CLONE_NEWNET) != 0) GTEST_SKIP() << "no network namespaces here";
    const bool up = succeeds("ip tuntap add dev d0 mode tun") && succeeds("ip link set d0 addrgenmode none up") &&
                    succeeds("ip route add default dev d0") &&
                    succeeds("ip -6 address add fd00::99/128 dev d0 nodad") &&
                    succeeds("ip -6 route add default dev d0");
    if (!up) GTEST_SKIP() << "no tunnel interface here";
  }

  static std::string tool(const char* suffix) { return std::string(GetParam().command) + suffix; }

  static void send(const Probe& probe) {
    const std::vector<std::uint8_t> bytes = probe.bytes();
    const int family = GetParam().ipv6 ? AF_INET6 : AF_INET;
    const int fd = socket(family, SOCK_RAW, IPPROTO_RAW);  // we provide the IP header
    ASSERT_GE(fd, 0);
    sockaddr_storage to{};
    to.ss_family = static_cast<sa_family_t>(family);
    void* address = GetParam().ipv6 ? static_cast<void*>(&reinterpret_cast<sockaddr_in6&>(to).sin6_addr)
                                    : static_cast<void*>(&reinterpret_cast<sockaddr_in&>(to).sin_addr);
    std::memcpy(address, bytes.data() + (GetParam().ipv6 ? 24 : 16), GetParam().ipv6 ? 16 : 4);
    const socklen_t size = GetParam().ipv6 ? sizeof(sockaddr_in6) : sizeof(sockaddr_in);
    // EPERM means that a rule drops the packet.
    const ssize_t sent = sendto(fd, bytes.data(), bytes.size(), 0, reinterpret_cast<sockaddr*>(&to), size);
    EXPECT_TRUE(sent == static_cast<ssize_t>(bytes.size()) || errno == EPERM) << std::strerror(errno);
    close(fd);
  }
};

/// Parses "[packets:bytes] -A …" lines and the policy's ":OUTPUT DROP [packets:bytes]" into line number -> packets.
std::map<std::uint32_t, std::uint64_t> counts_of(const std::string& saved) {
  std::map<std::uint32_t, std::uint64_t> counts;
  LineReader lines(saved);
  for (Line line; lines.next(line);) {
    const std::size_t open = line.text.find('[');
    const bool counted = line.text.starts_with("[") || line.text.starts_with(":OUTPUT");
    if (counted) counts[line.number] = std::strtoull(line.text.data() + open + 1, nullptr, 10);
  }
  return counts;
}

TEST_P(Kernel, CountsThePacketsForTheRulesThatOurEnginesGive) {
  std::uint64_t matched = 0, sent = 0;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    Draw draw(GetParam().ipv6, GetParam().fragments, seed);
    const std::string table = draw.table();
    if (!feed(tool("-restore"), table)) {
      // Without the kernel modules, no rules can be loaded at all.
      if (!feed(tool("-restore") + " 2>/dev/null", "*filter\nCOMMIT\n"))
        GTEST_SKIP() << tool("-restore") << " cannot work here";
      FAIL() << "refused:\n" << table;
    }
    std::vector<Probe> probes;
    for (int i = 0; i < 400; ++i) probes.push_back(draw.probe());
    for (const Probe& probe : probes) send(probe);

    const std::string saved = output_of(tool("-save -c -t filter"));
    ReadOptions options;
    options.chain = "OUTPUT";
    options.interfaces.ports = {"d0"};
    options.interfaces.aliases = {{"lo", "none"}};
    const classify::Ruleset rules = rules_of(saved, options);
    std::map<std::uint32_t, std::uint64_t> expected = counts_of(saved);
    std::map<std::uint32_t, std::uint64_t> ours;
    std::vector<classify::Key> keys;
    for (const Probe& probe : probes) keys.push_back(probe.key());
    std::vector<std::uint32_t> entries(keys.size()), slow(keys.size());
    (*classify::make_classifier(classify::Engine::bitvector, rules))->classify(keys, entries.data());
    (*classify::make_classifier(classify::Engine::linear, rules))->classify(keys, slow.data());
    EXPECT_EQ(entries, slow);
    for (const std::uint32_t entry : entries) {
      if (entry != classify::kNoEntry) ++ours[rules.rules[rules.entries[entry].rule].line];
    }
    std::uint64_t by_rule = 0, policy = 0;
    for (const auto& [line, packets] : expected) {
      const auto rule = std::find_if(rules.rules.begin(), rules.rules.end(),
                                     [&, number = line](const classify::Rule& r) { return r.line == number; });
      if (rule == rules.rules.end()) {
        policy = packets;
        continue;
      }
      const bool decides = rule->text.ends_with("-j ACCEPT") || rule->text.ends_with("-j DROP");
      if (!decides) continue;  // the kernel also counts calls
      by_rule += packets;
      EXPECT_EQ(ours[line], packets) << "seed " << seed << ": " << rule->text;
    }
    EXPECT_EQ(by_rule + policy, probes.size()) << "packets that are not the test's";
    matched += by_rule;
    sent += probes.size();
  }
  EXPECT_GT(matched, sent / 4) << "rules that hardly match prove little";
}

/// The nf_tables variant accepts some of these rules.
class LegacyKernel : public Kernel {};

TEST_P(LegacyKernel, RefusesTheRulesThatOurReaderRefuses) {
  const std::string load = tool("-restore") + " 2>/dev/null";
  if (!feed(load, "*filter\nCOMMIT\n")) GTEST_SKIP() << tool("-restore") << " cannot work here";
  for (const auto& [rule, error] : kRefusedRules) EXPECT_FALSE(feed(load, table_of(rule))) << rule;
  for (const std::string_view rule : kTakenRules) {
    EXPECT_TRUE(feed(load, table_of(rule))) << rule;
    const auto read = read_rules(output_of(tool("-save -t filter")), "saved", {});
    EXPECT_TRUE(read) << rule << ": " << to_string(read.error());
  }
}

TEST_P(LegacyKernel, RefusesTheTranslationsThatOurReaderRefuses) {
  const std::string load = tool("-restore") + " 2>/dev/null";
  if (!feed(load, "*nat\nCOMMIT\n")) GTEST_SKIP() << tool("-restore") << " cannot work here";
  for (const auto& [line, error] : kRefusedTranslations) EXPECT_FALSE(feed(load, nat_table_of(line))) << line;
  for (const std::string_view line : kTakenTranslations) {
    EXPECT_TRUE(feed(load, nat_table_of(line))) << line;
    const auto read = read_rules(output_of(tool("-save -t nat")), "saved", nat_options_of(line));
    EXPECT_TRUE(read) << line << ": " << to_string(read.error());
  }
}

INSTANTIATE_TEST_SUITE_P(Iptables, Kernel,
                         ::testing::Values(Variant{"legacy", "iptables-legacy", false, true},
                                           Variant{"nft", "iptables-nft", false, false},
                                           Variant{"legacy6", "ip6tables-legacy", true, false},
                                           Variant{"nft6", "ip6tables-nft", true, false}),
                         [](const auto& variant) { return std::string(variant.param.name); });

INSTANTIATE_TEST_SUITE_P(Iptables, LegacyKernel, ::testing::Values(Variant{"legacy", "iptables-legacy", false, true}),
                         [](const auto& variant) { return std::string(variant.param.name); });

}  // namespace
}  // namespace penstock::firewall
