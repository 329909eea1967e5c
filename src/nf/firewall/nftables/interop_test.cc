// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Compares with the kernel: loads rules with nft into a network namespace, reads them back as JSON, and forwards
// packets through them. The kernel must forward exactly those that our firewall accepts. Needs root and nft; skipped
// otherwise.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <random>

#include "conntrack/options.h"
#include "function/testing/attached_stage.h"
#include "nf/firewall/firewall.h"
#include "nf/firewall/nftables/document.h"
#include "nf/firewall/nftables/kernel_for_test.h"
#include "nf/firewall/rule_pairs.h"
#include "nf/firewall/rules_for_test.h"
#include "packet/parse_core.h"
#include "packet/testing/packet_builder.h"

namespace penstock::firewall::nftables {
namespace {

using Random = std::mt19937_64;

std::size_t below(Random& random, std::size_t n) { return random() % n; }
std::string one_of(Random& random, const std::vector<std::string>& choices) {
  return choices[below(random, choices.size())];
}

constexpr std::uint8_t kGre = 47, kEsp = 50;

/// Packets of all kinds that rules distinguish, with the same few addresses and ports as the rules.
class Packets {
 public:
  explicit Packets(std::uint64_t seed) : random_(seed) {}

  Packet draw() {
    const bool ipv6 = below(random_, 2) == 0;
    testing::PacketBuilder packet;
    if (ipv6) {
      packet.ipv6(address6(), address6());
      if (below(random_, 6) == 0) packet.extension(one_extension());
      // Offsets are in units of 8 bytes, and the last bit says that more fragments follow.
      if (below(random_, 5) == 0) packet.fragment6(one_fragment({0, 1, 185 << 3, 185 << 3 | 1}));
      if (below(random_, 12) == 0) packet.extension(ip_protocol::kDestinationOptions);
    } else {
      const std::uint16_t fragment =
          below(random_, 5) == 0 ? one_fragment({0x2000, 185, 0x2000 | 185, 1}) : std::uint16_t{0};
      packet.ipv4(address4(), address4(), 64, {}, fragment);
    }
    add_transport(packet, ipv6);
    return packet.payload("0123456789abcdef0123").bytes();  // the end is overwritten
  }

 private:
  void add_transport(testing::PacketBuilder& packet, bool ipv6) {
    switch (below(random_, 10)) {
      case 0:
      case 1:
      case 2: packet.tcp(port(), port(), one_flags()); break;
      case 3:
      case 4: packet.udp(port(), port()); break;
      case 5: packet.sctp(port(), port()); break;
      case 6:
      case 7: packet.icmp(one_type(ipv6), static_cast<std::uint8_t>(below(random_, 5))); break;
      case 8: packet.udp(port(), port()).protocol(ip_protocol::kUdpLite); break;
      default:
        // ICMP of the other family has no type for us, nor for the kernel.
        packet.protocol(static_cast<std::uint8_t>(
            std::stoul(one_of(random_, {std::to_string(kGre), std::to_string(kEsp), "89", ipv6 ? "1" : "58"}))));
        packet.payload("zzzzzzzz");
    }
  }

  std::string address4() {
    return one_of(random_, {"10.1.2.3", "10.1.2.4", "10.1.255.255", "10.2.0.0", "10.3.0.1", "192.0.2.9"});
  }
  std::string address6() {
    return one_of(random_,
                  {"2001:db8::1", "2001:db8::2", "2001:db8:1::1", "2001:db8:1:ffff::", "2001:db9::", "fd00::1"});
  }
  std::uint16_t port() {
    return static_cast<std::uint16_t>(std::stoul(one_of(random_, {"1", "22", "79", "80", "81", "443", "65535"})));
  }
  std::uint8_t one_flags() {
    return static_cast<std::uint8_t>(
        below(random_, 2) == 0 ? random_() : std::stoul(one_of(random_, {"2", "18", "16", "17", "4"})));
  }
  std::uint8_t one_type(bool ipv6) {
    return static_cast<std::uint8_t>(std::stoul(ipv6 ? one_of(random_, {"1", "3", "4", "128", "129", "135"})
                                                     : one_of(random_, {"0", "3", "8", "11", "13"})));
  }
  std::uint8_t one_extension() { return static_cast<std::uint8_t>(std::stoul(one_of(random_, {"0", "43", "60"}))); }
  std::uint16_t one_fragment(const std::vector<int>& choices) {
    return static_cast<std::uint16_t>(choices[below(random_, choices.size())]);
  }

  Random random_;
};

ReadOptions options() {
  ReadOptions options;
  options.interfaces.ports.assign(ForwardingKernel::kInterfaces.begin(), ForwardingKernel::kInterfaces.end());
  options.interfaces.aliases = {{"lo", "none"}, {"other*", "none"}};
  return options;
}

/// The kernel, once for all tests.
class Kernel : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    if (kernel) return;
    kernel = ForwardingKernel::start(why);
    if (kernel) fragments_are_read = reads_later_fragments();
  }
  void SetUp() override {
    if (!kernel) GTEST_SKIP() << why;
  }

  /// Whether the kernel takes the payload of later fragments for transport headers. nft_payload_eval does not, but
  /// nft_payload_fast_eval in some versions does.
  static bool reads_later_fragments() {
    std::string answer;
    EXPECT_TRUE(ForwardingKernel::load(
        "table inet t {\nchain c {\ntype filter hook forward priority 0; policy drop;\ntcp dport 80 accept\n}\n}\n",
        answer))
        << answer;
    const Packet fragment =
        testing::packet().ipv4("10.1.2.3", "10.1.2.4", 64, {}, 185).tcp(1, 80).payload("0123456789").bytes();
    return kernel->forward({fragment}).front().has_value();
  }

  /// Whether our firewall and this kernel must agree on the packet.
  static bool is_comparable(const PacketLayout& layout, const std::string& rules) {
    if (!fragments_are_read || !layout.has(PacketLayout::kLaterFragment)) return true;
    return std::ranges::none_of(std::array{"port", "flags", "icmp"},
                                [&](const char* word) { return rules.find(word) != std::string::npos; });
  }

  /// The firewall with the kernel's rules.
  static std::unique_ptr<Firewall> ours(classify::Engine engine = classify::Engine::bitvector) {
    conntrack::Options tracking;
    tracking.checksum = false;  // packets get numbers here, and their checksums are not adjusted
    auto made = Firewall::build(rules_of(ForwardingKernel::rules(), options()), engine, {.tracking = tracking});
    EXPECT_TRUE(made) << to_string(made.error());
    return made ? std::move(*made) : nullptr;
  }

  /// A packet, and the interface on which it leaves without rules.
  struct Sent {
    Packet bytes;
    PacketLayout layout;
    unsigned out;
  };

  static std::vector<Sent> draw(std::uint64_t seed, std::size_t count) {
    Packets random(seed);
    std::vector<Packet> packets;
    for (std::size_t i = 0; i < count; ++i) packets.push_back(random.draw());
    std::string answer;
    EXPECT_TRUE(ForwardingKernel::load("", answer)) << answer;
    const std::vector<std::optional<unsigned>> left = kernel->forward(packets);
    std::vector<Sent> sent;
    for (std::size_t i = 0; i < count; ++i) {
      EXPECT_TRUE(left[i]) << "without rules, all packets must pass: " << hex(packets[i]);
      const auto length = static_cast<std::uint32_t>(packets[i].size());
      const PacketLayout layout = parse(packets[i].data(), length, length, LinkType::raw_ip);
      if (left[i]) sent.push_back({packets[i], layout, *left[i]});
    }
    return sent;
  }

  static Verdict judge(function::testing::AttachedStage& stage, Sent packet) {
    PacketDescriptor descriptor;
    descriptor.length = descriptor.wire_length = static_cast<std::uint32_t>(packet.bytes.size());
    descriptor.link_type = LinkType::raw_ip;
    descriptor.layout = packet.layout;
    descriptor.verdict = Verdict::forward(static_cast<PortIndex>(packet.out));
    descriptor.sequence = sequence++;
    // All at once, as in the kernel, which takes its own time.
    static const auto kNow = std::chrono::system_clock::now().time_since_epoch();
    descriptor.timestamp_ns = static_cast<std::uint64_t>(std::chrono::nanoseconds(kNow).count());
    PacketView view{packet.bytes.data(), &descriptor};
    stage.process({&view, 1});
    return descriptor.verdict;
  }

  /// Sends comparable packets through the loaded rules and our firewall.
  struct Comparison {
    std::size_t sent = 0, forwarded = 0;
  };
  static Comparison compare(const std::vector<Sent>& packets, Firewall& firewall, const std::string& rules) {
    std::vector<Packet> bytes;
    std::vector<const Sent*> compared;
    for (const Sent& packet : packets) {
      if (!is_comparable(packet.layout, rules)) continue;
      bytes.push_back(packet.bytes);
      compared.push_back(&packet);
    }
    const std::vector<std::optional<unsigned>> left = kernel->forward(bytes);
    function::testing::AttachedStage stage(firewall);
    Comparison comparison{bytes.size()};
    std::size_t differences = 0;
    for (std::size_t i = 0; i < bytes.size(); ++i) {
      const bool accepted = judge(stage, *compared[i]).alive();
      comparison.forwarded += left[i] ? 1 : 0;
      if (accepted == left[i].has_value() || ++differences > 5) continue;
      ADD_FAILURE() << "the kernel " << (left[i] ? "forwards" : "drops") << " " << hex(bytes[i]) << "\n" << rules;
    }
    return comparison;
  }

  static std::string hex(const Packet& packet) {
    std::string text;
    for (const std::uint8_t byte : packet) text += fmt::format("{:02x}", byte);
    return text;
  }

  static inline std::unique_ptr<ForwardingKernel> kernel;
  static inline std::string why;
  static inline bool fragments_are_read = false;
  static inline std::uint32_t sequence = 0;
};

/// Rules in chain `forward`, whose policy is drop, of a table of family inet. They must accept some packets and not
/// all.
struct Construct {
  const char* name;
  const char* rules;
  const char* others = "";  // sets, maps and chains of the table
};

constexpr auto kConstructs = std::to_array<Construct>({
    {"address", "ip saddr 10.1.2.3 accept; ip6 daddr 2001:db8::1 accept"},
    {"not_an_address", "ip saddr != 10.1.2.3 accept; ip6 daddr != 2001:db8::1 accept"},
    {"prefix", "ip saddr 10.1.0.0/16 accept; ip6 saddr != 2001:db8::/32 accept"},
    {"unaligned_prefix", "ip saddr 10.2.0.0/15 accept; ip6 saddr 2001:db8::/47 accept"},
    {"range", "ip daddr 10.1.2.4-10.2.0.0 accept; ip6 daddr != 2001:db8::2-2001:db8:1::1 accept"},
    {"less", "ip daddr < 10.1.255.255 accept; ip6 daddr >= 2001:db9:: accept"},
    {"set", "ip saddr { 10.1.2.3, 192.0.2.0/24 } accept; ip6 saddr { 2001:db8::1, fd00::/8 } accept"},
    {"not_in_set",
     "ip saddr != { 10.1.2.3, 192.0.2.0/24, 10.2.0.0 } accept; ip6 saddr != { 2001:db8::1, fd00::/8 } accept"},
    {"named_set", "ip saddr @s4 accept; ip6 daddr != @s6 accept",
     "set s4 { type ipv4_addr; elements = { 10.1.2.3, 10.3.0.1 }; }\n"
     "set s6 { type ipv6_addr; flags interval; elements = { 2001:db8::/32, fd00::1-fd00::9 }; }"},
    {"set_with_counters", "ip saddr @s4 accept",
     "set s4 { type ipv4_addr; counter; elements = { 10.1.2.3 comment \"x\", 10.3.0.1 }; }"},
    {"empty_set", "ip saddr @s4 accept; ip saddr != @s4 ip daddr 10.1.2.3 accept", "set s4 { type ipv4_addr; }"},
    {"typeof_set", "tcp dport @ports accept", "set ports { typeof tcp dport; elements = { 80, 443 }; }"},
    {"interval_of_ports", "udp sport @ports accept",
     "set ports { type inet_service; flags interval; auto-merge; elements = { 1-79, 80, 443 }; }"},
    {"port", "tcp dport 80 accept; udp sport 443 accept; sctp dport 22 accept; udplite dport 1 accept"},
    {"not_a_port", "tcp dport != 80 accept"},
    {"not_a_port_of_udp", "udp dport != 80 accept"},
    {"ports", "tcp dport 79-81 accept; udp sport > 80 accept; sctp sport <= 22 accept"},
    {"not_ports", "tcp dport != 79-81 accept; udp sport != { 1, 80-65535 } accept"},
    {"port_set", "tcp dport { 22, 79-81, 443 } accept"},
    {"all_ports", "tcp dport 0-65535 accept"},
    {"th", "meta l4proto { tcp, udp, sctp } th dport 80 accept"},
    {"th_of_ip_protocol", "ip protocol { tcp, 136 } th sport != 80 accept"},
    {"l4proto", "meta l4proto tcp accept; meta l4proto 89 accept"},
    {"not_l4proto", "meta l4proto != tcp accept"},
    {"not_in_l4protos", "meta l4proto != { tcp, udp, icmp, 132 } accept"},
    {"l4proto_range", "meta l4proto 6-58 accept"},
    {"ip_protocol", "ip protocol udp accept; ip protocol != { tcp, udp } ip saddr 10.1.2.3 accept"},
    {"nfproto", "meta nfproto ipv4 accept"},
    {"not_nfproto", "meta nfproto != ipv4 accept"},
    {"protocol", "meta protocol ip6 accept; meta protocol arp accept"},
    {"icmp_type", "icmp type echo-request accept; icmpv6 type { 1, nd-neighbor-solicit } accept"},
    {"not_icmp_type", "icmp type != echo-request accept; icmpv6 type != { 1, 3 } accept"},
    {"icmp_code", "icmp type destination-unreachable icmp code 1 accept; icmpv6 code 4 accept"},
    {"icmp_ranges", "icmp type 3-11 accept; icmpv6 type >= 128 accept; icmp code < 2 accept"},
    {"icmp_concatenation", "icmp type . icmp code { 3 . 0, 3 . 1, 8 . 2 } accept"},
    {"flag", "tcp flags syn accept"},
    {"flags_any", "tcp flags fin,rst accept"},
    {"flags_none", "tcp flags ! syn,ack accept"},
    {"flags_exact", "tcp flags == syn accept; tcp flags == 0x11 accept"},
    {"not_flags", "tcp flags != syn accept"},
    {"flags_masked", "tcp flags & (fin | syn | rst | ack) == syn accept"},
    {"flags_not_masked", "tcp flags & (fin | syn | rst | ack) != syn accept"},
    {"flags_masked_any", "tcp flags & (syn | ack) != 0 accept"},
    {"flags_set", "tcp flags { syn, syn | ack, ack } accept"},
    {"flags_masked_set", "tcp flags & (syn | ack | rst) { syn, ack } accept"},
    {"interfaces", "iifname \"d0\" oifname \"d2\" accept"},
    {"not_an_interface", "oifname != \"d1\" accept"},
    {"interface_wildcard", "iifname \"d*\" oifname != \"other*\" tcp dport 80 accept"},
    {"interface_set", "oifname { \"lo\", \"d2\" } accept"},
    {"not_in_interface_set", "oifname != { \"lo\", \"d2\" } accept"},
    {"interface_index", "iif \"d0\" oif \"d1\" accept"},
    {"interface_wildcards_in_set", "oifname @names accept",
     "set names { type ifname; flags interval; elements = { \"other*\", \"d2\" }; }"},
    {"interface_map", "oifname vmap { \"d1\" : jump one, \"d2\" : accept }", "chain one { tcp dport 80 accept; }"},
    {"masked_address",
     "ip saddr & 0.0.0.255 == 0.0.0.3 accept; ip6 daddr & ::ffff == ::1 accept; ip daddr & 0.255.0.255 != 0.1.0.3 tcp "
     "dport 80 accept"},
    {"fragment_bits", "ip frag-off & 0x3fff != 0 accept; ip frag-off & 0x2000 == 0 ip saddr 10.1.2.3 accept"},
    {"flow_label", "ip6 flowlabel 0 accept; ip6 flowlabel > 1 accept"},
    {"extension_headers",
     "exthdr hbh exists accept; exthdr rt exists accept; exthdr frag exists accept; exthdr dst missing tcp dport 80 "
     "accept"},
    {"fields_set",
     "ip saddr 10.1.2.3 ip dscp set ef; ip dscp ef accept; ip6 saddr 2001:db8::1 ip6 dscp set cs1; ip6 dscp cs1 "
     "accept; "
     "ip ttl set 9; ip ttl 9 tcp dport 443 accept; ip6 hoplimit set 200; ip6 hoplimit > 199 udp dport 80 accept; ip "
     "ecn "
     "set ect0; ip ecn ect0 udp dport 443 accept; meta priority set 1:10; tcp dport 22 meta priority set 1:10 accept"},
    {"jhash",
     "jhash ip saddr mod 4 seed 0x7 1 accept; jhash ip saddr . tcp dport mod 3 seed 0x1 2 accept; jhash ip6 saddr . "
     "ip6 "
     "daddr mod 5 seed 0x3 < 2 accept; jhash ip daddr mod 2 seed 0x5 offset 4 5 accept; jhash tcp sport mod 3 seed 0x2 "
     "1 "
     "accept; jhash ip6 saddr . ip6 daddr . udp sport . udp dport mod 3 seed 0x2 0 accept"},
    {"mark_by_map",
     "meta mark set jhash ip saddr mod 3 seed 0x9 offset 2; meta mark 3 accept; meta mark set numgen inc mod 2 map { 0 "
     ": "
     "0x11, 1 : 0x12 }; meta mark 0x11 tcp dport 80 accept; meta mark set jhash ip daddr mod 3 seed 0x9 map { 0 : "
     "0x21, "
     "1 : 0x22 }; meta mark 0x21 accept"},
    {"set_of_marks", "meta mark set jhash ip saddr mod 4 seed 0x9; meta mark @m accept",
     "set m { type mark; elements = { 0x1, 0x3 }; }"},
    {"later_fragment", "ip frag-off & 0x1fff != 0 accept; frag frag-off != 0 accept"},
    {"no_later_fragment", "ip frag-off & 0x1fff == 0 accept"},
    {"concatenation",
     "ip saddr . tcp dport { 10.1.2.3 . 80, 10.1.2.4 . 1-443 } accept; "
     "ip6 saddr . ip6 daddr { 2001:db8::/32 . fd00::1, fd00::1 . 2001:db8::1 } accept"},
    {"named_concatenation", "ip saddr . meta l4proto . th dport @s accept",
     "set s { type ipv4_addr . inet_proto . inet_service; flags interval; elements = { 10.1.0.0/16 . tcp . 1-80, "
     "10.1.2.3 . udp . 443 }; }"},
    {"map", "tcp dport vmap { 22 : drop, 80-81 : accept, 443 : jump one, 1 : goto one }; tcp sport 22 accept",
     "chain one { ip saddr 10.1.2.3 accept; return; ip saddr 10.1.2.4 accept; }"},
    {"named_map", "ip saddr vmap @m; ip6 saddr vmap @m6",
     "map m { type ipv4_addr : verdict; flags interval; elements = { 10.1.0.0/16 : accept, 10.2.0.0/16 : jump one }; "
     "}\n"
     "map m6 { type ipv6_addr : verdict; elements = { 2001:db8::1 : accept, 2001:db8::2 : jump one }; }\n"
     "chain one { meta l4proto tcp accept; }"},
    {"map_with_the_rest", "udp dport vmap { 80 : jump one, 22 : accept, * : accept }; meta nfproto ipv4 accept",
     "chain one { udp sport 1 drop; return; }"},
    {"map_of_concatenations", "ip saddr . tcp dport vmap { 10.1.2.3 . 80 : accept, 10.1.0.0/16 . 443 : jump one }",
     "chain one { tcp sport != 80 accept; }"},
    {"map_of_protocols",
     "meta l4proto vmap { tcp : jump one, udp : accept, icmp : continue, ipv6-icmp : drop }; meta l4proto icmp accept",
     "chain one { tcp dport 80 accept; }"},
    {"map_of_flags", "tcp flags vmap { syn : accept, syn | ack : jump one }", "chain one { tcp dport 80 accept; }"},
    {"jump_and_return", "meta nfproto ipv4 jump one; tcp sport 80 accept",
     "chain one { tcp dport 80 return; meta l4proto tcp accept; ip saddr 10.1.2.3 jump two; }\n"
     "chain two { udp dport 80 accept; return; udp dport 443 accept; }"},
    {"goto", "meta nfproto ipv4 goto one; tcp sport 80 accept",
     "chain one { tcp dport 80 return; meta l4proto tcp accept; ip saddr 10.1.2.3 jump two; }\n"
     "chain two { udp dport 80 goto three; udp dport 443 accept; }\nchain three { udp sport 1 accept; }"},
    {"jump_for_one_family", "ip saddr 10.0.0.0/8 jump one; ip6 saddr fd00::/8 jump one",
     "chain one { meta nfproto ipv6 accept; tcp dport 80 accept; ip daddr 10.1.2.3 accept; ip6 daddr fd00::1 drop; }"},
    {"dependencies",
     "ip protocol tcp tcp dport 80 accept; meta nfproto ipv6 udp dport 80 accept; meta protocol ip sctp sport 80 "
     "accept; "
     "ip protocol icmp icmp type 8 accept; meta l4proto ipv6-icmp icmpv6 type 1 accept"},
    {"rejects",
     "tcp dport 80 reject with tcp reset; reject with icmp admin-prohibited; ip6 saddr fd00::1 reject; accept"},
    {"limit", "limit rate 1/day burst 60 packets accept"},
    {"limit_over", "tcp dport 80 limit rate over 1/hour burst 3 packets drop; accept"},
    {"limit_before_a_match", "limit rate 1/week burst 100 packets tcp dport { 80, 443 } accept"},
    {"limit_of_bytes", "limit rate 1000 bytes/day burst 4 kbytes accept"},
    {"limit_of_bytes_over", "meta nfproto ipv4 limit rate over 900 bytes/day burst 900 bytes drop; accept"},
    {"limit_in_a_chain", "ip saddr 10.1.2.3 jump one; ip6 saddr 2001:db8::1 jump one; tcp sport 80 accept",
     "chain one { limit rate 1/day burst 20 packets accept; tcp dport 80 drop; }"},
    {"limit_of_a_jump", "limit rate 1/day burst 50 packets jump one; limit rate 1/day burst 7 packets goto one; accept",
     "chain one { meta l4proto tcp accept; udp dport 80 return; ip saddr 10.0.0.0/8 drop; }"},
    {"limit_with_alternatives",
     "ip saddr . tcp dport { 10.1.2.3 . 80, 10.1.0.0/16 . 1-443 } limit rate 1/day burst 5 packets accept"},
    {"named_limit", "tcp dport 80 limit name \"slow\" accept; udp dport 80 limit name \"slow\" accept",
     "limit slow { rate 1/day burst 30 packets; }"},
    {"quota", "quota 6 kbytes accept"},
    {"quota_over", "meta l4proto tcp quota over 2000 bytes drop; accept"},
    {"named_quota", "tcp dport 80 quota name \"q\" accept; udp sport 80 quota name \"q\" accept",
     "quota q { 3000 bytes used 1000 bytes; }"},
    {"mark",
     "tcp dport 80 meta mark set 0x12; udp dport 80 meta mark set 0x13; meta mark 0x12 accept; meta mark != 0 drop; ip "
     "saddr 10.1.2.3 accept"},
    {"mark_bits",
     "meta mark set 0xf0; tcp dport 80 meta mark set meta mark or 0x1; tcp sport 80 meta mark set meta mark xor 0x13; "
     "udp dport 80 meta mark set meta mark and 0x3f or 0x2; meta mark & 0x3 == 1 accept; meta mark { 0xe3, 0x30-0x33 } "
     "accept; "
     "meta mark and 0x80 == 0 accept"},
    {"mark_map",
     "tcp dport 80 meta mark set 5; udp dport 80 meta mark set 6; meta mark vmap { 5 : jump one, 6 : accept, 0 : "
     "continue }; ip saddr 10.1.2.3 accept",
     "chain one { tcp sport 22 accept; }"},
    {"set_that_changes",
     "tcp dport 80 add @seen { ip saddr }; ip saddr @seen accept; tcp dport 443 delete @seen { ip saddr }",
     "set seen { type ipv4_addr; flags dynamic; size 100; }"},
    {"set_with_timeouts",
     "ip6 saddr @seen accept; udp dport 80 update @seen { ip6 saddr timeout 1h }; ip6 saddr != @seen tcp dport 80 "
     "accept",
     "set seen { type ipv6_addr; flags dynamic,timeout; size 100; timeout 1d; elements = { fd00::1 } }"},
    {"set_of_pairs_that_changes",
     "meta l4proto { tcp, udp } update @seen { ip saddr . th dport }; meta l4proto { tcp, udp } ip daddr . th sport "
     "@seen accept",
     "set seen { type ipv4_addr . inet_service; flags dynamic; size 100; }"},
    {"full_set", "add @seen { ip saddr } accept; add @seen6 { ip6 saddr } accept",
     "set seen { type ipv4_addr; flags dynamic; size 3; }\nset seen6 { type ipv6_addr; flags dynamic; size 2; }"},
    {"limit_of_an_element", "add @each { ip saddr limit rate 1/day burst 4 packets } accept",
     "set each { type ipv4_addr; flags dynamic; size 100; }"},
    {"quota_of_an_element", "add @each { ip6 saddr quota over 500 bytes } drop; accept",
     "set each { type ipv6_addr; flags dynamic; size 100; }"},
    {"meter", "tcp dport 80 meter m { ip saddr limit rate over 1/day burst 2 packets } drop; accept"},
    {"turns", "numgen inc mod 3 1 accept"},
    {"turns_of_some",
     "tcp dport 80 numgen inc mod 2 vmap { 0 : accept, 1 : jump one }; udp dport 80 numgen inc mod 3 != 0 accept",
     "chain one { ip saddr 10.1.2.3 accept; }"},
    {"logs", "log prefix \"a\"; tcp dport 80 log prefix \"b\" level debug flags all accept"},
    {"length_and_ttl",
     "meta length > 60 accept; ip ttl < 30 accept; ip6 hoplimit > 200 accept; ip length 20-48 accept"},
    {"dscp", "ip dscp != 0 accept; ip6 dscp cs1 accept; ip ecn != ce tcp dport 80 accept"},
    {"counters_and_comments", "counter; tcp dport 80 counter accept comment \"web\"; counter drop"},
});

class ConstructOnKernel : public Kernel, public ::testing::WithParamInterface<Construct> {};

TEST_P(ConstructOnKernel, DecidesAsOurFirewallDoes) {
  const Construct& construct = GetParam();
  static const std::vector<Sent> kPackets = draw(1, 600);
  std::string rules = construct.rules;
  for (std::size_t at = 0; (at = rules.find("; ", at)) != std::string::npos;) rules.replace(at, 2, "\n");
  const std::string table = fmt::format(
      "table inet t {{\n{}\nchain forward {{\ntype filter hook forward priority 0; policy drop;\n{}\n}}\n}}\n",
      construct.others, rules);
  std::string answer;
  if (!ForwardingKernel::load(table, answer)) GTEST_SKIP() << "this kernel or nft refuses the rules: " << answer;
  const auto firewall = ours();
  ASSERT_NE(firewall, nullptr);
  // Ethernet types as numbers are not supported.
  if (table.find("meta protocol") == std::string::npos) {
    EXPECT_TRUE(same_meaning(firewall->rules(), rules_of(ForwardingKernel::rules("-nj"), options()))) << "with numbers";
  }
  const Comparison result = compare(kPackets, *firewall, table);
  EXPECT_GT(result.forwarded, 0U) << "a construct that never matches proves little";
  EXPECT_LT(result.forwarded, result.sent) << "nor does one that always matches";
}

INSTANTIATE_TEST_SUITE_P(Nftables, ConstructOnKernel, ::testing::ValuesIn(kConstructs),
                         [](const auto& construct) { return std::string(construct.param.name); });

/// Draws rule sets of all constructs.
class RuleSets {
 public:
  /// `transport`: whether rules test transport headers.
  RuleSets(std::uint64_t seed, bool transport) : random_(seed), transport_(transport) {}

  std::string draw() {
    // Packets pass the chains of several tables, also of equal priority.
    std::string text = table("inet", "a", one_of(random_, {"accept", "drop"}), 20);
    if (below(random_, 2) == 0) text += table("ip", "b", "accept", 6);
    if (below(random_, 2) == 0) text += table("ip6", "b", one_of(random_, {"accept", "accept", "drop"}), 6);
    if (below(random_, 2) == 0) text += table("inet", "c", "accept", 6);
    return text;
  }
  std::string draw_one() { return table("inet", "a", one_of(random_, {"accept", "drop"}), 25); }

 private:
  std::string pick(const std::vector<std::string>& choices) { return one_of(random_, choices); }
  std::string maybe_not() { return below(random_, 4) == 0 ? "!= " : ""; }

  std::string table(const std::string& family, const std::string& name, const std::string& policy, int rules) {
    family_ = family;
    std::string text = fmt::format("table {} {} {{\n", family, name);
    if (family != "ip6") {
      text +=
          "set s4 { type ipv4_addr; flags interval; elements = { 10.1.2.0/24, 10.2.0.0-10.3.0.1 }; }\n"
          "set pairs { type ipv4_addr . inet_service; flags interval; elements = { 10.1.0.0/16 . 80, 10.1.2.3 . "
          "1-79 }; }\n";
    }
    if (family != "ip") text += "set s6 { type ipv6_addr; elements = { 2001:db8::1, 2001:db8:1::1, fd00::1 }; }\n";
    if (transport_) text += "set ports { type inet_service; elements = { 22, 443 }; }\n";
    text += "chain c1 {\n" + rules_of_chain(rules / 2, {"accept", "drop", "return", "jump c2", "goto c2", "reject"}) +
            "}\n";
    text += "chain c2 {\n" + rules_of_chain(rules / 2, {"accept", "drop", "return"}) + "}\n";
    text += fmt::format(
        "chain forward {{\ntype filter hook forward priority {}; policy {};\n{}}}\n}}\n", pick({"-10", "0", "0", "10"}),
        policy, rules_of_chain(rules, {"accept", "drop", "jump c1", "jump c2", "goto c1", "reject", "continue"}));
    return text;
  }

  std::string rules_of_chain(int count, const std::vector<std::string>& verdicts) {
    std::string text;
    for (int i = 0; i < count; ++i) {
      std::string rule = network();
      rule += transport();
      if (below(random_, 6) == 0)
        rule += map(verdicts) + "\n";
      else
        rule += "counter " + pick(verdicts) + "\n";
      text += rule;
    }
    return text;
  }

  std::string network() {
    ipv6_ = family_ == "ip6" || (family_ == "inet" && below(random_, 2) == 0);
    const bool ipv6 = ipv6_;
    std::string text;
    if (below(random_, 8) == 0) text += pick({"oifname ", "oif "}) + maybe_not() + pick({"\"d1\" ", "\"d2\" "});
    if (below(random_, 12) == 0)
      text += "oifname " + maybe_not() + pick({"{ \"d2\", \"lo\" } ", "\"d*\" ", "\"other*\" "});
    if (family_ == "inet" && below(random_, 12) == 0)
      text += pick({"meta nfproto ", "meta nfproto != "}) + (ipv6 ? "ipv6 " : "ipv4 ");
    switch (below(random_, 5)) {
      case 0: text += address(ipv6, "saddr"); break;
      case 1: text += address(ipv6, "daddr"); break;
      case 2: text += address(ipv6, "saddr") + address(ipv6, "daddr"); break;
      case 3:
        if (below(random_, 4) == 0)
          text += ipv6 ? "frag frag-off != 0 " : "ip frag-off & 0x1fff " + pick({"!= 0 ", "== 0 "});
        break;
      default: break;
    }
    return text;
  }

  std::string address(bool ipv6, const std::string& which) {
    if (ipv6) {
      return "ip6 " + which + " " + maybe_not() +
             pick({"2001:db8::/32 ", "2001:db8::1 ", "2001:db8::2-2001:db8:1::1 ", "{ 2001:db8::1, fd00::/8 } ", "@s6 ",
                   "2001:db8:1::/48 "});
    }
    return "ip " + which + " " + maybe_not() +
           pick({"10.0.0.0/8 ", "10.1.2.3 ", "10.1.2.4-10.2.0.0 ", "{ 10.1.2.3, 192.0.2.0/24, 10.3.0.1 } ", "@s4 ",
                 "10.1.0.0/16 "});
  }

  std::string transport() {
    switch (below(random_, transport_ ? 9 : 3)) {
      case 0:
        return "meta l4proto " + pick({"tcp ", "udp ", "!= tcp ", "{ tcp, udp, 89 } ", "!= { tcp, 47 } ", "17-58 "});
      case 3:
      case 4: return pick({"tcp ", "udp ", "sctp ", "udplite "}) + port_match();
      case 5:
        return "tcp " + port_match() + "tcp flags " +
               pick({"syn ", "== syn ", "!= syn ", "& (fin | syn | rst | ack) == syn ", "fin,rst ",
                     "& (syn | ack) != 0 ", "{ syn, ack } ", "! syn,rst "});
      case 6: return "meta l4proto { tcp, udp } th " + port_match();
      case 7:
        return ipv6_ ? "icmpv6 type " + maybe_not() + pick({"128 ", "{ 1, 135 } ", "1-4 "})
                     : "icmp type " + maybe_not() + pick({"8 ", "{ 3, 11 } ", "3-11 "});
      case 8: return ipv6_ ? "" : "ip saddr . tcp dport @pairs ";
      default: return "";
    }
  }

  std::string port_match() {
    return pick({"sport ", "dport "}) + pick({"", "!= "}) + pick({"80 ", "1-79 ", "{ 22, 79-81 } ", "@ports ", "443 "});
  }

  std::string map(const std::vector<std::string>& verdicts) {
    const auto verdict = [&] {
      std::string text = pick(verdicts);
      return text == "reject" ? std::string("drop") : text;
    };
    switch (below(random_, 3)) {
      case 0: return fmt::format("oifname vmap {{ \"d1\" : {}, \"d2\" : {} }}", verdict(), verdict());
      case 1:
        return fmt::format("meta l4proto vmap {{ tcp : {}, udp : {}, 89 : {} }}", verdict(), verdict(), verdict());
      default:
        return !ipv6_ ? fmt::format("ip saddr vmap {{ 10.1.0.0/16 : {}, 192.0.2.9 : {} }}", verdict(), verdict())
                      : fmt::format("ip6 saddr vmap {{ 2001:db8::/47 : {}, fd00::1 : {} }}", verdict(), verdict());
    }
  }

  Random random_;
  bool transport_;
  std::string family_;
  bool ipv6_ = false;  // the addresses in the current rule
};

TEST_F(Kernel, DecidesRandomRuleSetsAsOurEnginesDo) {
  std::size_t sent = 0, forwarded = 0;
  const std::vector<Sent> packets = draw(2, 300);
  for (std::uint64_t seed = 1; seed <= 30 && !HasFailure(); ++seed) {
    // Without transport headers, fragments are like other packets.
    const std::string rules = RuleSets(seed, seed % 3 != 0).draw();
    std::string answer;
    ASSERT_TRUE(ForwardingKernel::load(rules, answer)) << "seed " << seed << ": " << answer << "\n" << rules;
    const auto firewall = ours(kEngines[seed % kEngines.size()]);
    ASSERT_NE(firewall, nullptr) << rules;
    const Comparison result = compare(packets, *firewall, rules);
    forwarded += result.forwarded;
    sent += result.sent;
  }
  EXPECT_GT(forwarded, sent / 10);
  EXPECT_LT(forwarded, sent - sent / 10);
}

/// nft prints extensions of xtables without their arguments, so only few of them can be read.
TEST_F(Kernel, DecidesRulesOfIptablesAsOurFirewallDoes) {
  const std::string rules =
      "*filter\n:FORWARD DROP [0:0]\n:own - [0:0]\n"
      "-A FORWARD -s 10.1.0.0/17 ! -o d2 -j own\n"
      "-A FORWARD ! -d 10.2.0.0/15 -p udp -m udp --sport 1:79 -j ACCEPT\n"
      "-A FORWARD -p tcp -m tcp --tcp-flags SYN,ACK SYN -g own\n"
      "-A FORWARD -i d+ -p sctp -j ACCEPT\n"
      "-A own -p tcp -m tcp ! --dport 80 -j RETURN\n"
      "-A own -p tcp -m tcp --sport 22 -j REJECT --reject-with tcp-reset\n"
      "-A own -m comment --comment \"some\" -j ACCEPT\n"
      "COMMIT\n";
  std::string answer;
  if (!ForwardingKernel::load_iptables(rules, answer)) GTEST_SKIP() << "iptables-nft cannot work here: " << answer;
  const std::string loaded = ForwardingKernel::rules();
  const auto made = Firewall::build(rules_of(loaded, options()), classify::Engine::bitvector);
  ASSERT_TRUE(made) << to_string(made.error());
  const std::vector<Sent> packets = draw(4, 600);
  ASSERT_TRUE(ForwardingKernel::load_iptables(rules, answer)) << answer;
  const Comparison result = compare(packets, **made, "ports\n" + rules);
  EXPECT_GT(result.forwarded, 0U);
  EXPECT_LT(result.forwarded, result.sent);
}

/// Rules of iptables in chain FORWARD of table filter, whose policy is DROP, and of table mangle.
struct IptablesConstruct {
  const char* name;
  const char* rules;
  const char* mangle = "";
};
constexpr auto kIptablesSteps = std::to_array<IptablesConstruct>({
    {"limit", "-A FORWARD -m limit --limit 1/day --limit-burst 50 -j ACCEPT\n"},
    {"limit_of_ports",
     "-A FORWARD -p tcp -m multiport --ports 80,443 -m limit --limit 1/day --limit-burst 20 -j ACCEPT\n"
     "-A FORWARD -m limit --limit 1/day --limit-burst 30 -p udp -m udp --dport 80 -j ACCEPT\n"},
    {"hashlimit",
     "-A FORWARD -m hashlimit --hashlimit-upto 1/min --hashlimit-burst 5 --hashlimit-mode srcip,dstip "
     "--hashlimit-name a --hashlimit-srcmask 16 -j ACCEPT\n"
     "-A FORWARD -p tcp -m hashlimit --hashlimit-above 1/min --hashlimit-burst 3 --hashlimit-mode dstport "
     "--hashlimit-name b -j DROP\n-A FORWARD -p tcp -j ACCEPT\n"},
    {"recent",
     "-A FORWARD -p tcp -m recent --set --name x --mask 255.255.255.255 --rsource\n"
     "-A FORWARD -p udp -m recent --rcheck --hitcount 4 --name x --mask 255.255.255.255 --rsource -j ACCEPT\n"
     "-A FORWARD -p icmp -m recent --remove --name x --mask 255.255.255.255 --rsource -j ACCEPT\n"
     "-A FORWARD -p sctp -m recent ! --update --seconds 60 --name x --mask 255.255.255.255 --rsource -j ACCEPT\n"},
    {"recent_destinations",
     "-A FORWARD -p tcp -m recent --update --seconds 60 --hitcount 3 --name y --mask 255.255.0.0 --rdest -j DROP\n"
     "-A FORWARD -p tcp -m recent --set --name y --mask 255.255.0.0 --rdest -j ACCEPT\n"},
    {"marks",
     "-A FORWARD -m mark --mark 0x12 -j ACCEPT\n-A FORWARD -m mark ! --mark 0x0/0x3 -j DROP\n"
     "-A FORWARD -p udp -m mark --mark 0x0 -j ACCEPT\n",
     "-A FORWARD -p tcp -j MARK --set-xmark 0x10/0xffffffff\n"
     "-A FORWARD -p tcp -m tcp --dport 80 -j MARK --set-xmark 0x2/0x0\n"
     "-A FORWARD -p udp -m udp --dport 80 -j MARK --set-xmark 0x5/0xf\n"},
    {"mangle_drops", "-A FORWARD -p tcp -j ACCEPT\n",
     "-A FORWARD -p tcp -m tcp --dport 80 -j DROP\n-A FORWARD -j ACCEPT\n"},
    {"statistic",
     "-A FORWARD -m statistic --mode nth --every 3 --packet 1 -j ACCEPT\n"
     "-A FORWARD -p tcp -m statistic --mode nth ! --every 2 --packet 0 -j ACCEPT\n"},
    {"quota", "-A FORWARD -m quota --quota 5000 -j ACCEPT\n-A FORWARD -p tcp -m quota ! --quota 600 -j ACCEPT\n"},
    {"length_and_ttl",
     "-A FORWARD -m length --length 0:48 -j ACCEPT\n-A FORWARD -m length ! --length 50:65535 -j ACCEPT\n"
     "-A FORWARD -m ttl --ttl-lt 3 -j ACCEPT\n-A FORWARD -p tcp -m ttl ! --ttl-eq 200 -j ACCEPT\n"},
    {"string",
     "-A FORWARD -m string --string \"456789abc\" --algo bm --from 40 --to 62 -j ACCEPT\n"
     "-A FORWARD -p tcp -m string --hex-string \"|30 31|2\" --algo kmp --to 44 -j ACCEPT\n"
     "-A FORWARD -p udp -m string ! --string \"ABCDEF01\" --algo kmp -j ACCEPT\n"
     "-A FORWARD -p sctp -m string --string \"ABCDEF\" --icase --algo kmp -j ACCEPT\n"},
    {"masks", "-A FORWARD -s 10.1.2.3/255.255.0.255 -j ACCEPT\n-A FORWARD ! -d 0.0.0.4/0.0.0.255 -p tcp -j ACCEPT\n"},
    {"hop_limits_set",
     "-A FORWARD -p tcp -m ttl --ttl-eq 9 -m tcp --dport 80 -j ACCEPT\n-A FORWARD -p udp -m ttl --ttl-lt 1 -j ACCEPT\n"
     "-A FORWARD -m ttl --ttl-gt 64 -j ACCEPT\n",
     "-A FORWARD -p tcp -j TTL --ttl-set 9\n-A FORWARD -p udp -j TTL --ttl-dec 200\n"
     "-A FORWARD -p sctp -j TTL --ttl-inc 5\n"},
    {"traffic_class_set",
     "-A FORWARD -p tcp -m dscp --dscp 0x2e -m tcp --dport 80 -j ACCEPT\n-A FORWARD -m dscp --dscp 0x04 -j ACCEPT\n",
     "-A FORWARD -p tcp -j DSCP --set-dscp 0x2e\n-A FORWARD -p udp -j TOS --set-tos 0x10/0x3f\n"
     "-A FORWARD -j CLASSIFY --set-class 1:10\n"},
    {"time",
     "-A FORWARD -p tcp -m time --weekdays Mon,Tue,Wed -j ACCEPT\n"
     "-A FORWARD -p tcp -m tcp --dport 80 -m time ! --weekdays Mon,Tue,Wed -j ACCEPT\n"
     "-A FORWARD -p udp -m time --timestart 12:00 --timestop 06:00 --monthdays 1,3,5,7,9,11,13,15,17,19,21,23,25,27,29 "
     "-j ACCEPT\n-A FORWARD -p udp -m time --timestart 18:00 --timestop 12:00 --weekdays Mon,Wed,Fri --contiguous -j "
     "ACCEPT\n"
     "-A FORWARD -p icmp -m time --datestart 2020-01-01T00:00:00 --datestop 2037-01-01T00:00:00 -j ACCEPT\n"},
    {"dscp", "-A FORWARD -m dscp ! --dscp 0x00 -j ACCEPT\n-A FORWARD -p tcp -m dscp --dscp 0x00 -j ACCEPT\n"},
    {"chains",
     "-A FORWARD -p udp -m multiport --ports 80,443 -j own\n-A FORWARD -p tcp -j ACCEPT\n"
     "-A own -m limit --limit 1/day --limit-burst 12 -j RETURN\n-A own -m limit --limit 1/day --limit-burst 5 -g "
     "other\n"
     "-A own -j ACCEPT\n-A other -p udp -m udp --sport 80 -j ACCEPT\n"},
});

TEST_F(Kernel, DoesTheStepsOfIptablesAsOurFirewallDoes) {
  for (const IptablesConstruct& construct : kIptablesSteps) {
    SCOPED_TRACE(construct.name);
    const std::string rules = fmt::format(
        "*mangle\n:FORWARD ACCEPT [0:0]\n{}COMMIT\n*filter\n:FORWARD DROP [0:0]\n:own - [0:0]\n:other - "
        "[0:0]\n{}COMMIT\n",
        construct.mangle, construct.rules);
    std::vector<Sent> packets = draw(5, 400);
    std::erase_if(packets, [](const Sent& one) { return one.layout.network != NetworkLayer::ipv4; });
    std::string answer;
    if (!ForwardingKernel::load_iptables(rules, answer)) {
      ADD_FAILURE() << "iptables refuses: " << answer;
      continue;
    }
    ReadOptions as = options();
    as.hook = Hook::forward;
    const auto made = Firewall::build(rules_of(rules, as), classify::Engine::bitvector);
    ASSERT_TRUE(made) << to_string(made.error());
    const Comparison result = compare(packets, **made, "ports\n" + rules);
    EXPECT_GT(result.forwarded, 0U);
    EXPECT_LT(result.forwarded, result.sent);
  }
}

/// The counts of the rules that end with a verdict, by handle.
std::map<std::string, std::uint64_t> counts_of(const std::string& rules) {
  std::map<std::string, std::uint64_t> counts;
  const auto visited =
      visit_objects(rules, "rules", 100'000, [&](std::size_t, const std::string& kind, const Json& value) {
        if (kind != "rule") return true;
        const Json& statements = value["expr"];
        const std::string& last = statements.back().begin().key();
        if (statements.size() < 2 || (last != "accept" && last != "drop" && last != "reject")) return true;
        const Json& before = statements[statements.size() - 2];
        if (before.contains("counter"))
          counts[std::to_string(value["handle"].get<std::uint64_t>())] = before["counter"]["packets"];
        return true;
      });
  EXPECT_TRUE(visited) << to_string(visited.error());
  return counts;
}

TEST_F(Kernel, CountsThePacketsForTheSameRules) {
  std::uint64_t matched = 0, sent = 0;
  const std::vector<Sent> packets = draw(3, 300);
  for (std::uint64_t seed = 100; seed < 112 && !HasFailure(); ++seed) {
    const std::string rules = RuleSets(seed, seed % 3 != 0).draw_one();
    std::string answer;
    ASSERT_TRUE(ForwardingKernel::load(rules, answer)) << answer << "\n" << rules;
    const auto firewall = ours();
    ASSERT_NE(firewall, nullptr);
    sent += compare(packets, *firewall, rules).sent;
    std::map<std::string, std::uint64_t> counted;
    const std::vector<RuleCounters::Count> sums = firewall->counts();
    for (std::size_t i = 0; i < firewall->rules().rules.size(); ++i) {
      const std::string& text = firewall->rules().rules[i].text;
      counted[text.substr(text.rfind(' ') + 1)] += sums[i].packets;
    }
    for (const auto& [handle, packets_of_rule] : counts_of(ForwardingKernel::rules())) {
      EXPECT_EQ(counted[handle], packets_of_rule) << "seed " << seed << ", handle " << handle << "\n" << rules;
      matched += packets_of_rule;
    }
  }
  EXPECT_GT(matched, sent / 4) << "rules that hardly match prove little";
}

/// Packets of some connections, from both sides, in an order that often makes sense. `port` distinguishes them from
/// those of other calls.
std::vector<Packet> conversations(std::uint64_t seed, std::uint16_t port) {
  constexpr std::size_t kConnections = 12, kPackets = 240;
  constexpr std::uint8_t kSyn = TcpHeader::kSyn, kAck = TcpHeader::kAck, kFin = TcpHeader::kFin, kRst = TcpHeader::kRst;
  Random random(seed);
  std::array<unsigned, kConnections> steps{};
  std::vector<Packet> packets;
  while (packets.size() < kPackets) {
    const std::size_t which = below(random, kConnections);
    const unsigned step = steps[which]++;
    const bool ipv6 = which % 4 == 3;
    const bool reply = below(random, 5) == 0 ? below(random, 2) == 0 : step % 2 == 1;
    const auto own = static_cast<std::uint16_t>(port + which);
    const std::string inside = ipv6 ? "2001:db8::1" : "10.1.2.3", outside = ipv6 ? "2001:db9::7" : "10.3.0.1";
    const auto between = [&](const std::string& from, const std::string& to) {
      testing::PacketBuilder packet;
      return ipv6 ? packet.ipv6(from, to) : packet.ipv4(from, to);
    };
    testing::PacketBuilder packet = reply ? between(outside, inside) : between(inside, outside);
    const std::uint16_t from = reply ? std::uint16_t{80} : own, to = reply ? own : std::uint16_t{80};
    if (which % 3 == 0) {
      packet.udp(from, to);
    } else if (below(random, 12) == 0) {  // an error about it, which its sender gets
      testing::PacketBuilder quoted = between(inside, outside);
      quoted.tcp(own, 80).payload("01234567");
      packet = between(ipv6 ? "2001:db9::99" : "10.3.0.99", inside);
      packet.icmp(ipv6 ? 1 : 3, 1).raw(quoted.bytes());
    } else {
      const std::array<std::uint8_t, 4> usual{kSyn, kSyn | kAck, kAck, kAck};
      const std::array<std::uint8_t, 8> any{kSyn, kSyn | kAck, kAck, kFin | kAck, kRst, kRst | kAck, 0, kSyn | kFin};
      packet.tcp(from, to, step < usual.size() && below(random, 4) != 0 ? usual[step] : any[below(random, any.size())]);
    }
    packets.push_back(packet.payload("0123456789abcdef0123").bytes());  // the end is overwritten
  }
  return packets;
}

/// Rules about connections; as for Construct.
constexpr auto kAboutConnections = std::to_array<Construct>({
    {"replies",
     "ct state established,related accept; iifname \"d0\" ip saddr 10.1.0.0/16 ct state new accept; "
     "ip6 saddr 2001:db8::/32 ct state new accept"},
    {"map", "ct state vmap { invalid : drop, established : accept, related : accept, new : jump one }",
     "chain one { ip saddr 10.1.2.3 accept; ip6 saddr 2001:db8::1 accept; }"},
    {"set", "ct state { new, untracked } accept; ct state { established } udp sport 80 accept"},
    {"not", "ct state != established accept; ct state != { new, invalid } udp dport 80 accept"},
    {"any_of_none", "ct state ! new,invalid accept; tcp flags syn accept; meta l4proto udp accept"},
    {"not_several",
     "ct state != established,related tcp dport 80 accept; ct state == established,related udp dport 80 accept"},
    {"invalid", "ct state invalid accept; ct state new accept"},
    {"direction", "ct direction original accept"},
    {"not_a_direction", "ct direction != reply ct state established accept; ct state new accept"},
    {"translated", "ct status snat,dnat drop; ct status dnat accept; ct state new accept; tcp dport 80 accept"},
    {"concatenation", "ct state . ip saddr { new . 10.1.2.3, established . 10.3.0.1 } accept"},
    {"original_addresses",
     "ct original ip saddr 10.1.2.3 tcp dport 80 accept; ct reply ip saddr 10.3.0.0/16 udp sport 80 accept; ct "
     "original "
     "ip6 daddr != 2001:db8::1 accept"},
    {"original_ports",
     "meta l4proto tcp ct original proto-src 80 accept; meta l4proto udp ct reply proto-src 80 accept; meta l4proto "
     "tcp "
     "ct original proto-dst 80 tcp sport 80 accept"},
    {"protocol_of_connection", "ct original protocol udp accept; ct state invalid accept"},
    {"status",
     "ct status assured tcp sport 80 accept; ct status seen-reply,expected udp dport 80 accept; ct state new accept"},
    {"expiration", "ct expiration > 100s accept; ct state new udp dport 80 accept"},
    {"helper", "ct helper \"ftp\" accept; ct helper \"irc\" accept; ct state new accept"},
    {"mark",
     "tcp flags syn ct mark set 0x7; ct mark 0x7 accept; meta mark set ct mark or 0x1; meta mark 0x1 udp dport 80 "
     "accept"},
    {"mark_of_packets",
     "ct mark 0 ct mark set meta mark xor 0x5; meta mark set ct mark and 0x4; meta mark 0x4 tcp dport 80 accept; ct "
     "mark 0x5 udp dport 80 accept"},
    {"limit_of_new_ones", "ct state established accept; ct state new limit rate 1/day burst 3 packets accept"},
    {"dropped",
     "udp sport 80 ct state new drop; ct state established accept; udp dport 80 accept; tcp sport 80 drop; "
     "tcp dport 80 accept"},
});

/// In Linux, the rules make the kernel track. Each set of rules has connections of its own.
TEST_F(Kernel, TracksConnectionsAsOurFirewallDoes) {
  if (!ForwardingKernel::trust_checksums()) GTEST_SKIP() << "this kernel does not track connections";
  std::uint16_t port = 10'000;
  for (const Construct& construct : kAboutConnections) {
    SCOPED_TRACE(construct.name);
    const std::string rules = fmt::format(
        "table inet t {{\n{}\nchain forward {{\ntype filter hook forward priority 0; policy drop;\n{}\n}}\n}}\n",
        construct.others, construct.rules);
    std::string answer;
    std::size_t sent = 0, forwarded = 0;
    for (std::uint64_t seed = 1; seed <= 3; ++seed, port = static_cast<std::uint16_t>(port + 100)) {
      // Also the limits begin anew.
      ASSERT_TRUE(ForwardingKernel::load(rules, answer)) << answer << rules;
      const auto firewall = ours();
      ASSERT_NE(firewall, nullptr);
      std::vector<Sent> packets;
      for (Packet& packet : conversations(seed, port)) {
        const auto length = static_cast<std::uint32_t>(packet.size());
        const PacketLayout layout = parse(packet.data(), length, length, LinkType::raw_ip);
        const bool outward = packet[0] >> 4 == 4 ? packet[16 + 1] == 3 : packet[24 + 3] == 0xb9;
        packets.push_back({std::move(packet), layout, outward ? 2U : 1U});
      }
      const Comparison result = compare(packets, *firewall, rules);
      sent += result.sent;
      forwarded += result.forwarded;
    }
    EXPECT_GT(forwarded, 0U);
    EXPECT_LT(forwarded, sent);
  }
}

/// What is matched, of the packets of `conversations`.
TEST_F(Kernel, TracksConnectionsOfRulesOfIptablesAsOurFirewallDoes) {
  if (!ForwardingKernel::trust_checksums()) GTEST_SKIP() << "this kernel does not track connections";
  std::uint16_t port = 30'000;
  for (const char* own :
       {"-m conntrack --ctstate NEW --ctorigdst 10.3.0.0/16 -j ACCEPT", "-m conntrack --ctproto 17 -j ACCEPT",
        "-m conntrack --ctstate ESTABLISHED --ctorigdstport 80 -j ACCEPT",
        "-m conntrack ! --ctreplsrc 10.3.0.1 -j ACCEPT",
        "-m conntrack --ctstatus SEEN_REPLY --ctdir ORIGINAL -j ACCEPT", "-m conntrack ! --ctstatus ASSURED -j ACCEPT",
        "-m conntrack --ctexpire 100:130 -j ACCEPT", "-m conntrack --ctstate INVALID,NEW --ctproto tcp -j ACCEPT",
        "-m conntrack ! --ctorigsrcport 1:1024 ! --ctrepldstport 80 -j ACCEPT"}) {
    SCOPED_TRACE(own);
    const std::string rules = fmt::format(
        "*filter\n:FORWARD DROP [0:0]\n-A FORWARD {}\n-A FORWARD -s 10.1.2.3 -m conntrack --ctstate NEW -j "
        "ACCEPT\nCOMMIT\n",
        own);
    std::string answer;
    ASSERT_TRUE(ForwardingKernel::load_iptables(rules, answer)) << answer;
    conntrack::Options tracking;
    tracking.checksum = false;
    const auto made = Firewall::build(rules_of(rules, options()), classify::Engine::bitvector, {.tracking = tracking});
    ASSERT_TRUE(made) << to_string(made.error());
    std::vector<Sent> packets;
    for (Packet& packet : conversations(7, port)) {
      const auto length = static_cast<std::uint32_t>(packet.size());
      const PacketLayout layout = parse(packet.data(), length, length, LinkType::raw_ip);
      if (layout.network != NetworkLayer::ipv4) continue;
      const bool outward = packet[16 + 1] == 3;
      packets.push_back({std::move(packet), layout, outward ? 2U : 1U});
    }
    port = static_cast<std::uint16_t>(port + 100);
    const Comparison result = compare(packets, **made, rules);
    EXPECT_GT(result.forwarded, 0U);
    EXPECT_LT(result.forwarded, result.sent);
  }
}

TEST_F(Kernel, KnowsHoursAndDaysAsOurFirewallDoes) {
  const std::vector<Sent> packets = draw(6, 200);
  for (const char* own :
       {"meta hour \"00:00\"-\"12:00\" tcp dport 80 accept", "meta hour >= \"12:00\" meta l4proto tcp accept",
        "meta hour != \"06:00\"-\"18:00\" meta l4proto tcp accept",
        "meta day { \"Monday\", \"Friday\" } meta l4proto tcp accept",
        "meta day != \"Friday\" meta l4proto tcp accept"}) {
    SCOPED_TRACE(own);
    std::string answer;
    const std::string rules = fmt::format(
        "table inet t {{\nchain forward {{\ntype filter hook forward priority 0; policy drop;\n{}\nmeta l4proto udp "
        "accept\n}}\n}}\n",
        own);
    ASSERT_TRUE(ForwardingKernel::load(rules, answer)) << answer << rules;
    const auto firewall = ours();
    ASSERT_NE(firewall, nullptr);
    EXPECT_GT(compare(packets, *firewall, "ports\n" + rules).forwarded, 0U);
  }
}

}  // namespace
}  // namespace penstock::firewall::nftables
