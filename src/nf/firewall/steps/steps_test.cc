// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Steps of rules: limits, quotas, sets that change, marks, lists, logs. What they mean is also compared with the kernel
// (nftables/interop_test.cc, iptables_interop_test.cc).

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/text_file.h"
#include "function/arrivals.h"
#include "function/emitter.h"
#include "function/shared_objects.h"
#include "function/testing/attached_stage.h"
#include "nf/firewall/firewall.h"
#include "nf/firewall/rules_for_test.h"
#include "nf/firewall/steps/element_table.h"
#include "nf/firewall/steps/packet_log.h"
#include "nf/firewall/steps/recent_list.h"
#include "nf/firewall/steps/segment_size.h"
#include "packet/parse_core.h"
#include "packet/testing/packet_builder.h"

namespace penstock::firewall {
namespace {

using penstock::testing::packet;
using penstock::testing::PacketBuilder;
using ::testing::HasSubstr;

constexpr std::uint64_t kSecond = 1'000'000'000;
constexpr std::uint64_t kStart = 1'700'000'000 * kSecond;

/// A firewall in a chain of its own.
class Gateway {
 public:
  explicit Gateway(const std::string& rules, ReadOptions options = {}, Firewall::Setup setup = {}) {
    setup.tracking.checksum = false;
    setup.port_names = {"lan", "wan"};
    setup.largest_packets = {1500, 1492};
    auto made = Firewall::build(rules_of(rules, options), classify::Engine::bitvector, std::move(setup));
    EXPECT_TRUE(made) << to_string(made.error());
    firewall = std::move(*made);
    stage.emplace(*firewall);
  }

  bool passes(const PacketBuilder& builder, std::uint64_t seconds = 0, std::uint32_t mark = 0) {
    frame = builder.bytes();
    descriptor = {};
    descriptor.length = descriptor.wire_length = static_cast<std::uint32_t>(frame.size());
    descriptor.timestamp_ns = kStart + seconds * kSecond;
    descriptor.sequence = sequence_++;
    descriptor.mark = mark;
    descriptor.verdict = Verdict::forward(1);
    PacketView view{frame.data(), &descriptor};
    parse(view);
    stage->process({&view, 1});
    return descriptor.verdict.alive();
  }
  /// How many of `count` packets pass.
  unsigned passing(const PacketBuilder& builder, unsigned count, std::uint64_t seconds = 0) {
    unsigned passed = 0;
    for (unsigned i = 0; i < count; ++i) passed += passes(builder, seconds) ? 1 : 0;
    return passed;
  }

  std::unique_ptr<Firewall> firewall;
  std::optional<function::testing::AttachedStage> stage;
  penstock::testing::Bytes frame;
  PacketDescriptor descriptor;

 private:
  std::uint32_t sequence_ = 0;
};

std::string filter(const std::string& rules) {
  return "*filter\n:FORWARD DROP [0:0]\n:one - [0:0]\n" + rules + "COMMIT\n";
}
PacketBuilder udp_from(const std::string& source) { return packet().eth().ipv4(source, "10.9.9.9").udp(1, 53); }
PacketBuilder syn(std::uint16_t port, const std::string& source = "10.0.0.1") {
  return packet().eth().ipv4(source, "10.9.9.9").tcp(port, 80, TcpHeader::kSyn);
}

TEST(Steps, ALimitFillsAgainWithTime) {
  Gateway gateway(filter("-A FORWARD -m limit --limit 2/min --limit-burst 3 -j ACCEPT\n"));
  EXPECT_EQ(gateway.passing(udp_from("10.0.0.1"), 10), 3U);
  EXPECT_EQ(gateway.passing(udp_from("10.0.0.1"), 10, 29), 0U);
  EXPECT_EQ(gateway.passing(udp_from("10.0.0.1"), 10, 30), 1U);
  EXPECT_EQ(gateway.passing(udp_from("10.0.0.1"), 10, 3600), 3U);
}

TEST(Steps, ALimitCountsOnlyWhatReachesIt) {
  Gateway before(filter("-A FORWARD -m limit --limit 1/day --limit-burst 2 -p udp -m udp --dport 53 -j ACCEPT\n"));
  const PacketBuilder other = packet().eth().ipv4("10.0.0.1", "10.9.9.9").udp(1, 54);
  EXPECT_EQ(before.passing(other, 5), 0U);
  EXPECT_EQ(before.passing(udp_from("10.0.0.1"), 5), 0U) << "the other packets have used it up";
  Gateway after(filter("-A FORWARD -p udp -m udp --dport 53 -m limit --limit 1/day --limit-burst 2 -j ACCEPT\n"));
  EXPECT_EQ(after.passing(other, 5), 0U);
  EXPECT_EQ(after.passing(udp_from("10.0.0.1"), 5), 2U);
}

TEST(Steps, EachHostHasALimitOfItsOwn) {
  Gateway gateway(
      filter("-A FORWARD -m hashlimit --hashlimit-upto 1/day --hashlimit-burst 2 --hashlimit-mode srcip "
             "--hashlimit-name h --hashlimit-srcmask 24 --hashlimit-htable-expire 100000000 -j ACCEPT\n"));
  EXPECT_EQ(gateway.passing(udp_from("10.0.0.1"), 5), 2U);
  EXPECT_EQ(gateway.passing(udp_from("10.0.0.200"), 5), 0U);
  EXPECT_EQ(gateway.passing(udp_from("10.0.1.1"), 5), 2U);
}

TEST(Steps, AFullTableOfHashlimitDrops) {
  Gateway gateway(filter(
      "-A FORWARD -m hashlimit --hashlimit-above 1/day --hashlimit-burst 9 --hashlimit-mode srcip "
      "--hashlimit-name h --hashlimit-htable-max 2 --hashlimit-htable-expire 10000 -j DROP\n-A FORWARD -j ACCEPT\n"));
  EXPECT_TRUE(gateway.passes(udp_from("10.0.0.1")));
  EXPECT_TRUE(gateway.passes(udp_from("10.0.0.2")));
  EXPECT_FALSE(gateway.passes(udp_from("10.0.0.3"))) << "a limit that is not known must not let packets through";
  EXPECT_TRUE(gateway.passes(udp_from("10.0.0.3"), 60)) << "the others have expired";
}

TEST(Steps, ConnectionsOfAHostAreCountedUntilTheyEnd) {
  Gateway gateway(
      filter("-A FORWARD -p tcp -m tcp --tcp-flags FIN,SYN,RST,ACK SYN -m connlimit --connlimit-above 2 -j DROP\n"
             "-A FORWARD -j ACCEPT\n"));
  EXPECT_TRUE(gateway.firewall->traits().one_worker);
  EXPECT_TRUE(gateway.passes(syn(1)));
  EXPECT_TRUE(gateway.passes(syn(2)));
  EXPECT_TRUE(gateway.passes(syn(2))) << "a repeated SYN is of the same connection";
  EXPECT_FALSE(gateway.passes(syn(3)));
  EXPECT_TRUE(gateway.passes(syn(3, "10.0.0.2"))) << "of another host";
  EXPECT_TRUE(
      gateway.passes(packet().eth().ipv4("10.9.9.9", "10.0.0.1").tcp(80, 1, TcpHeader::kRst | TcpHeader::kAck)));
  EXPECT_TRUE(gateway.passes(syn(3), 20)) << "the first has been refused by its server";
}

// A busy host must not keep another one's list from being looked through.
TEST(Steps, LongListsOfConnectionsAreIndependent) {
  Gateway gateway(
      filter("-A FORWARD -p tcp -m tcp --syn -m connlimit --connlimit-above 70 -j DROP\n-A FORWARD -j ACCEPT\n"));
  for (const char* const host : {"10.0.0.1", "10.0.0.2"}) {
    for (std::uint16_t port = 1; port <= 70; ++port) ASSERT_TRUE(gateway.passes(syn(port, host)));
    EXPECT_FALSE(gateway.passes(syn(71, host)));
  }
  for (std::uint16_t port = 1; port <= 70; ++port) {
    const auto refusal = packet().eth().ipv4("10.9.9.9", "10.0.0.2").tcp(80, port, TcpHeader::kRst | TcpHeader::kAck);
    ASSERT_TRUE(gateway.passes(refusal, 10));
  }
  EXPECT_FALSE(gateway.passes(syn(72), 20));
  EXPECT_TRUE(gateway.passes(syn(72, "10.0.0.2"), 20));
}

TEST(Steps, RecentKnowsAddressesAndTheirTimes) {
  Gateway gateway(
      filter("-A FORWARD -m recent --update --seconds 60 --hitcount 3 --name ssh --rsource -j DROP\n"
             "-A FORWARD -m recent --set --name ssh --rsource -j ACCEPT\n"));
  EXPECT_EQ(gateway.passing(udp_from("10.0.0.1"), 3), 3U);
  EXPECT_FALSE(gateway.passes(udp_from("10.0.0.1"), 1));
  EXPECT_TRUE(gateway.passes(udp_from("10.0.0.2"), 1));
  EXPECT_FALSE(gateway.passes(udp_from("10.0.0.1"), 59));
  EXPECT_TRUE(gateway.passes(udp_from("10.0.0.1"), 120));
}

TEST(Steps, RecentForgetsTheOldestAddress) {
  RecentList list;
  classify::Recent set{}, check{};
  set.way = classify::Recent::Way::set;
  const auto holds = [&](const classify::Recent& match, std::uint64_t address) {
    return list.holds(match, {0, address}, NetworkLayer::ipv4, 64, kStart).value();
  };
  for (std::uint64_t address = 0; address <= RecentList::kMostAddresses; ++address) EXPECT_TRUE(holds(set, address));
  EXPECT_FALSE(holds(check, 0));
  EXPECT_TRUE(holds(check, 1));
  EXPECT_FALSE(list.holds(check, {0, 1}, NetworkLayer::ipv6, 64, kStart).value()) << "of the other family";
}

TEST(Steps, MarksArePartOfThePacketAndTheConnection) {
  ReadOptions options;
  options.hook = Hook::forward;
  Gateway gateway(
      "*mangle\n:FORWARD ACCEPT [0:0]\n-A FORWARD -p tcp -j MARK --set-xmark 0x10/0xf0\n"
      "-A FORWARD -m mark --mark 0x11 -j CONNMARK --save-mark --nfmask 0xff --ctmask 0xff\nCOMMIT\n" +
          filter("-A FORWARD -m connmark --mark 0x11/0xff -j ACCEPT\n"),
      options);
  EXPECT_FALSE(gateway.passes(syn(1)));
  EXPECT_EQ(gateway.descriptor.mark, 0x10U);
  EXPECT_TRUE(gateway.passes(syn(2), 0, 0x71));
  EXPECT_EQ(gateway.descriptor.mark, 0x11U);
  EXPECT_TRUE(gateway.passes(syn(2))) << "the connection has it";
}

TEST(Steps, AStepOfARuleIsDoneOnceForAPacket) {
  // Two alternatives of the jump match, and of the rule in the chain.
  Gateway gateway(
      filter("-A FORWARD -p udp -m multiport --ports 1,53 -j one\n"
             "-A one -p udp -m multiport --ports 1,53 -m limit --limit 1/day --limit-burst 4 -j RETURN\n"
             "-A one -j DROP\n"
             "-A FORWARD -j ACCEPT\n"));
  EXPECT_EQ(gateway.passing(udp_from("10.0.0.1"), 9), 4U);
}

TEST(Steps, EveryNthPacketMatches) {
  Gateway gateway(filter("-A FORWARD -m statistic --mode nth --every 3 --packet 0 -j ACCEPT\n"));
  std::string passed;
  for (int i = 0; i < 9; ++i) passed += gateway.passes(udp_from("10.0.0.1")) ? '+' : '-';
  EXPECT_EQ(passed, "+--+--+--");
}

TEST(Steps, AProbabilityIsMetRoughly) {
  Gateway gateway(filter("-A FORWARD -m statistic --mode random --probability 0.25000000000 -j ACCEPT\n"));
  const unsigned passed = gateway.passing(udp_from("10.0.0.1"), 20'000);
  EXPECT_GT(passed, 4'500U);
  EXPECT_LT(passed, 5'500U);
}

TEST(Steps, TheSegmentSizeFitsTheWay) {
  ReadOptions options;
  options.hook = Hook::forward;
  Gateway gateway(
      "*mangle\n:FORWARD ACCEPT [0:0]\n-A FORWARD -p tcp -m tcp --tcp-flags SYN,RST SYN -j TCPMSS "
      "--clamp-mss-to-pmtu\nCOMMIT\n" +
          filter("-A FORWARD -j ACCEPT\n"),
      options);
  const auto with_option = [](std::uint16_t size) {
    const std::vector<std::uint8_t> bytes{
        1, 2, 4, static_cast<std::uint8_t>(size >> 8), static_cast<std::uint8_t>(size), 1, 1, 0};
    return packet().eth().ipv4("10.0.0.1", "10.9.9.9").tcp(1, 80, TcpHeader::kSyn, bytes);
  };
  EXPECT_TRUE(gateway.passes(with_option(1460)));
  const auto size = [&] { return segment_size_of({gateway.frame.data(), &gateway.descriptor}); };
  EXPECT_EQ(size(), 1452);
  EXPECT_TRUE(gateway.passes(with_option(1400)));
  EXPECT_EQ(size(), 1400) << "never raised";
}

TEST(Steps, RoutingHeadersHaveTypes) {
  Gateway gateway(
      "# Generated by ip6tables-save\n" +
      filter("-A FORWARD -m rt --rt-type 0 -j DROP\n-A FORWARD -p tcp -m nfacct --nfacct-name n -j ACCEPT\n"));
  const auto tcp = [](bool routed) {
    PacketBuilder builder = packet().eth().ipv6("2001:db8::1", "2001:db8::2");
    if (routed) builder.extension(ip_protocol::kDestinationOptions).extension(ip_protocol::kRouting);
    return builder.tcp(1, 80);
  };
  EXPECT_TRUE(gateway.passes(tcp(false)));
  EXPECT_FALSE(gateway.passes(tcp(true)));
}

TEST(Steps, ConnectionsGetTheHelperThatRulesGiveThem) {
  ReadOptions options;
  options.hook = Hook::prerouting;
  const std::string rules =
      "*raw\n:PREROUTING ACCEPT [0:0]\n-A PREROUTING -p tcp -m tcp --dport 2121 -j CT --helper ftp\n"
      "-A PREROUTING -p udp -j CT --helper tftp\nCOMMIT\n";
  const auto read = read_rules(rules, "rules", options);
  ASSERT_TRUE(read) << to_string(read.error());
  EXPECT_TRUE(read->unsupported.empty()) << to_string(read->unsupported);
  EXPECT_TRUE(read->value.gives_helpers);
  EXPECT_EQ(read->value.rules[0].steps.size(), 1U);
  EXPECT_TRUE(read->value.rules[1].left_out);
}

TEST(Steps, LogsAreLinesAsThoseOfLinux) {
  const std::string path = ::testing::TempDir() + "packet.log";
  std::remove(path.c_str());
  {
    report::EventLog log(path, report::EventLog::Start::anew);
    ASSERT_TRUE(log.open());
    log.begin();
    ReadOptions options;
    options.logs = true;
    Firewall::Setup setup;
    setup.log = &log;
    Gateway gateway(filter("-A FORWARD -p udp -j LOG --log-prefix \"in: \"\n-A FORWARD -p tcp -j LOG --log-prefix "
                           "\"a\tb\"\n-A FORWARD -j ACCEPT\n") +
                        "# Generated by ip6tables-save\n" +
                        filter("-A FORWARD -p tcp -j LOG --log-prefix \"a\tb\"\n-A FORWARD -j ACCEPT\n"),
                    options, std::move(setup));
    EXPECT_TRUE(gateway.passes(packet().eth().ipv4("10.0.0.1", "10.9.9.9").udp(1, 53)));
    EXPECT_TRUE(gateway.passes(packet().eth().ipv6("2001:db8::1", "2001:db8::2").tcp(7, 80, TcpHeader::kSyn)));
    gateway.stage.reset();
    gateway.firewall.reset();
    EXPECT_TRUE(log.close().empty());
  }
  const auto text = read_text_file(path);
  ASSERT_TRUE(text);
  EXPECT_THAT(*text, HasSubstr(" penstock: in: IN=lan OUT=wan MAC="));
  EXPECT_THAT(*text, HasSubstr("SRC=10.0.0.1 DST=10.9.9.9 LEN="));
  EXPECT_THAT(*text, HasSubstr("PROTO=UDP SPT=1 DPT=53 LEN="));
  EXPECT_THAT(*text, HasSubstr("SRC=2001:0db8:0000:0000:0000:0000:0000:0001 DST="));
  EXPECT_THAT(*text, HasSubstr("SYN URGP=0"));
  EXPECT_THAT(*text, HasSubstr("penstock: a?bIN=lan"));
  EXPECT_EQ(std::ranges::count(*text, '\n'), 2);
}

TEST(Steps, AReloadKeepsTheStateOfEqualObjects) {
  const std::string rule = "-A FORWARD -p udp -m limit --limit 1/day --limit-burst 3 -j ACCEPT\n";
  Gateway before(filter(rule));
  EXPECT_EQ(before.passing(udp_from("10.0.0.1"), 2), 2U);
  Gateway same(filter(rule + "-A FORWARD -p tcp -j ACCEPT\n"));
  ASSERT_TRUE(same.firewall->take_over(*before.firewall));
  EXPECT_EQ(same.passing(udp_from("10.0.0.1"), 5), 1U);
  Gateway other(filter("-A FORWARD -p udp -m limit --limit 1/day --limit-burst 4 -j ACCEPT\n"));
  ASSERT_TRUE(other.firewall->take_over(*same.firewall));
  EXPECT_EQ(other.passing(udp_from("10.0.0.1"), 5), 4U) << "another limit begins anew";
}

TEST(Steps, FirewallsOfAChainShareObjectsOfAFile) {
  function::SharedObjects shared;
  const std::string rules =
      filter("-A FORWARD -m recent --rcheck --name x -j ACCEPT\n-A FORWARD -p tcp -m recent --set --name x\n");
  const auto setup = [&] {
    Firewall::Setup with_others;
    with_others.shared = &shared;
    return with_others;
  };
  Gateway one(rules, {}, setup()), other(rules, {}, setup());
  EXPECT_FALSE(one.passes(syn(1)));
  EXPECT_TRUE(other.passes(udp_from("10.0.0.1")));
}

TEST(Steps, RulesWithStepsRunOnTheHost) {
  Gateway with(filter("-A FORWARD -m limit --limit 1/sec -j ACCEPT\n"));
  EXPECT_EQ(with.firewall->traits().access_on(function::Processor::gpu), nullptr);
  Gateway without(filter("-A FORWARD -p udp -j ACCEPT\n"));
  EXPECT_NE(without.firewall->traits().access_on(function::Processor::gpu), nullptr);
}

TEST(Steps, RfcRefusesThem) {
  const auto made =
      Firewall::build(rules_of(filter("-A FORWARD -m limit --limit 1/sec -j ACCEPT\n")), classify::Engine::rfc);
  ASSERT_FALSE(made);
  EXPECT_THAT(to_string(made.error()), HasSubstr("`engine: bitvector`"));
}

ReadOptions with_ipsets(std::string_view text) {
  auto sets = read_ipsets(text, "sets", 1000);
  EXPECT_TRUE(sets) << to_string(sets.error());
  ReadOptions options;
  if (sets) options.ipsets = std::make_shared<const Ipsets>(std::move(*sets));
  return options;
}

constexpr std::string_view kIpsets =
    "create hosts hash:ip family inet hashsize 1024 maxelem 65536 bucketsize 12 initval 0x1\n"
    "add hosts 10.0.0.1\nadd hosts 10.0.0.2 comment \"a b\"\n"
    "create nets hash:net family inet hashsize 1024 maxelem 65536\nadd nets 10.1.0.0/16\n"
    "create ports bitmap:port range 0-65535\nadd ports 53\nadd ports 60-70\n"
    "create services hash:ip,port family inet hashsize 1024 maxelem 65536\nadd services 10.9.9.9,tcp:80\n"
    "create ways hash:net,port family inet hashsize 1024 maxelem 65536\nadd ways 10.2.0.0/16,udp:50-60\n"
    "create all list:set size 8\nadd all hosts\nadd all nets\n"
    "create seen hash:ip family inet hashsize 1024 maxelem 2 timeout 60\n"
    "create six hash:ip family inet6 hashsize 1024 maxelem 10\nadd six fd00::1\n";

TEST(Ipsets, AreLookedUpByTheirParts) {
  const ReadOptions options = with_ipsets(kIpsets);
  const auto passes = [&](const std::string& match, const PacketBuilder& builder) {
    return Gateway(filter("-A FORWARD -m set " + match + " -j ACCEPT\n"), options).passes(builder);
  };
  EXPECT_TRUE(passes("--match-set hosts src", udp_from("10.0.0.2")));
  EXPECT_FALSE(passes("--match-set hosts src", udp_from("10.0.0.3")));
  EXPECT_FALSE(passes("--match-set hosts dst", udp_from("10.0.0.2")));
  EXPECT_TRUE(passes("! --match-set hosts src", udp_from("10.0.0.3")));
  EXPECT_TRUE(passes("--match-set nets src", udp_from("10.1.200.1")));
  EXPECT_TRUE(passes("--match-set ports dst", udp_from("10.1.200.1")));
  EXPECT_FALSE(passes("--match-set ports src", udp_from("10.1.200.1")));
  EXPECT_TRUE(passes("--match-set services dst,dst", syn(1)));
  EXPECT_FALSE(passes("--match-set services dst,src", syn(1)));
  EXPECT_FALSE(passes("--match-set services dst", syn(1))) << "fewer directions than parts";
  EXPECT_FALSE(passes("--match-set services dst,dst", packet().eth().ipv4("10.0.0.1", "10.9.9.9").udp(1, 80)));
  EXPECT_TRUE(passes("! --match-set services dst,dst", packet().eth().ipv4("10.0.0.1", "10.9.9.9").icmp(8)));
  EXPECT_TRUE(passes("--match-set ways src,dst", udp_from("10.2.3.4")));
  EXPECT_FALSE(passes("--match-set ways src,dst", udp_from("10.3.3.4")));
  EXPECT_TRUE(passes("--match-set all src", udp_from("10.1.2.3")));
  EXPECT_TRUE(passes("--match-set all src", udp_from("10.0.0.1")));
  EXPECT_FALSE(passes("--match-set all src", udp_from("10.0.0.9")));
  EXPECT_FALSE(passes("--match-set six src", udp_from("10.0.0.9")));
  EXPECT_TRUE(passes("! --match-set six src", udp_from("10.0.0.9")));
}

TEST(Ipsets, ChangeByRules) {
  Gateway gateway(
      filter("-A FORWARD -p tcp -j SET --add-set seen src\n-A FORWARD -m set --match-set seen src -j ACCEPT\n"
             "-A FORWARD -p icmp -j SET --del-set hosts src\n-A FORWARD -m set --match-set hosts src -j ACCEPT\n"),
      with_ipsets(kIpsets));
  EXPECT_FALSE(gateway.passes(udp_from("10.7.0.1")));
  EXPECT_TRUE(gateway.passes(syn(1, "10.7.0.1")));
  EXPECT_TRUE(gateway.passes(udp_from("10.7.0.1"), 59));
  EXPECT_FALSE(gateway.passes(udp_from("10.7.0.1"), 60));
  EXPECT_TRUE(gateway.passes(udp_from("10.0.0.1"), 60));
  EXPECT_FALSE(gateway.passes(packet().eth().ipv4("10.0.0.1", "10.9.9.9").icmp(8), 60));
  EXPECT_FALSE(gateway.passes(udp_from("10.0.0.1"), 60));
}

TEST(Ipsets, MistakesAreErrorsAndOtherTypesUnsupported) {
  for (const char* wrong :
       {"create a hash:ip family inet\ncreate a hash:ip family inet\n", "add a 1.2.3.4\n", "flush a\n", "create a\n",
        "create a hash:ip family inet\nadd a 1.2.3\n", "create a hash:ip family inet\nadd a fd00::1\n",
        "create a hash:ip family inet9\n", "create a hash:ip family inet timeout x\n",
        "create a hash:ip,port family inet\nadd a 1.2.3.4\n",
        "create a hash:ip,port family inet\nadd a 1.2.3.4,tcp:x\n", "create a hash:mac\nadd a 00:11:22:33:44\n",
        "create a hash:ip comment\nadd a 1.2.3.4 comment \"x\n"}) {
    const auto sets = read_ipsets(wrong, "sets", 1000);
    ASSERT_FALSE(sets) << wrong;
    EXPECT_THAT(to_string(sets.error()), HasSubstr("sets:")) << wrong;
  }
  EXPECT_FALSE(read_ipsets("create a hash:ip\nadd a 1.2.3.4\nadd a 1.2.3.5\n", "sets", 2)) << "too many lines";
  const ReadOptions options = with_ipsets(
      "create a hash:net,iface family inet\nadd a 10.0.0.0/8,eth0\ncreate b hash:net family inet\nadd b 10.0.0.0/8\n"
      "add b 10.1.0.0/16 nomatch\n");
  for (const char* name : {"a", "b"}) {
    const auto read =
        read_rules(filter(std::string("-A FORWARD -m set --match-set ") + name + " src -j ACCEPT\n"), "rules", options);
    ASSERT_TRUE(read) << to_string(read.error());
    EXPECT_EQ(read->unsupported.size(), 1U);
  }
  EXPECT_THAT(errors_of(filter("-A FORWARD -m set --match-set c src -j ACCEPT\n"), options),
              HasSubstr("unknown set: found 'c'"));
  const auto without = read_rules(filter("-A FORWARD -m set --match-set c src -j ACCEPT\n"), "rules", {});
  ASSERT_TRUE(without);
  EXPECT_THAT(to_string(without->unsupported), HasSubstr("the parameter `ipsets`"));
}

TEST(Steps, WrongOptionsAreErrors) {
  ReadOptions options;
  for (const char* wrong : {"-m limit --limit 5/week -j ACCEPT",
                            "-m limit --limit 0/sec -j ACCEPT",
                            "-m limit --limit-burst x -j ACCEPT",
                            "-m limit --limit 1/s --limit 2/s -j ACCEPT",
                            "-m limit ! --limit 1/s -j ACCEPT",
                            "-m mark --mark 0x1/ -j ACCEPT",
                            "-m mark --mark 0x100000000 -j ACCEPT",
                            "-m recent --set --rcheck -j ACCEPT",
                            "-m recent --name a -j ACCEPT",
                            "-m recent --rcheck --hitcount 256 -j ACCEPT",
                            "-m recent --rcheck --seconds 0 -j ACCEPT",
                            "-m recent --set --hitcount 3 -j ACCEPT",
                            "-j CONNMARK --save-mark --set-mark 2",
                            "-m statistic --mode random --probability 1.5 -j ACCEPT",
                            "-m statistic --mode nth --every 2 --packet 2 -j ACCEPT",
                            "-m connlimit --connlimit-mask 24 -j ACCEPT",
                            "-m connlimit --connlimit-above 1 --connlimit-upto 2 -j ACCEPT",
                            "-m hashlimit --hashlimit-upto 1/s -j ACCEPT",
                            "-m length --length 9:3 -j ACCEPT",
                            "-m ttl --ttl-eq 256 -j ACCEPT",
                            "-m ttl --ttl-lt 3 --ttl-gt 5 -j ACCEPT",
                            "-m mac --mac-source 00:11:22:33:44 -j ACCEPT",
                            "-j MARK",
                            "-j MARK --set-xmark 1/x",
                            "-j CONNMARK --save-mark --nfmask y",
                            "-p tcp -j TCPMSS --set-mss 0",
                            "-j TCPMSS"}) {
    EXPECT_NE(errors_of(filter(std::string("-A FORWARD ") + wrong + "\n"), options), "read without an error") << wrong;
  }
}

/// Firewalls with rules about the link headers with which packets arrived, after a function that writes others.
class AfterRouter {
 public:
  explicit AfterRouter(const std::string& rules, ReadOptions options = {}, PortIndex host = kNoPort)
      : gateway_(rules, std::move(options), {.host = host, .link_is_written = true}) {
    EXPECT_TRUE(gateway_.firewall->traits().asks_for_arrivals);
    emitter_.know_arrivals(&arrivals_);
    (*gateway_.stage)->set_emitter(emitter_);
  }

  /// Whether a packet with this link header passes. `is_known`: its arrival is.
  bool passes(const MacAddress& source, const MacAddress& destination, bool ipv6 = false, bool is_known = true,
              PortIndex in_port = 0) {
    PacketBuilder builder = packet().eth();
    ipv6 ? builder.ipv6("fd00::1", "fd00::2") : builder.ipv4("10.0.0.1", "10.9.9.9");
    penstock::testing::Bytes frame = builder.udp(1, 53).bytes();
    PacketDescriptor descriptor;
    descriptor.length = descriptor.wire_length = static_cast<std::uint32_t>(frame.size());
    descriptor.in_port = in_port;
    PacketView view{frame.data(), &descriptor};
    parse(view);
    view.ethernet().source = source;
    view.ethernet().destination = destination;
    arrivals_.forget();
    if (is_known) arrivals_.add({&view, 1});
    view.ethernet().source = {{2, 0, 0, 0, 0, 0xaa}};
    view.ethernet().destination = {{2, 0, 0, 0, 0, 0xbb}};
    descriptor.verdict = Verdict::forward(1);
    gateway_.stage->process({&view, 1});
    return descriptor.verdict.alive();
  }

 private:
  function::Arrivals arrivals_{4};
  function::Emitter emitter_;
  Gateway gateway_;
};

constexpr MacAddress kHost{{2, 0, 0, 0, 0, 1}}, kOtherHost{{2, 0, 0, 0, 0, 2}}, kRouter{{2, 0, 0, 0, 0, 9}},
    kAllHosts{{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}}, kGroup{{1, 0, 0x5e, 0, 0, 1}}, kWritten{{2, 0, 0, 0, 0, 0xaa}};

/// In the chain `c` of nftables at a hook.
std::string at_hook(const std::string& hook, const std::string& policy, const std::string& match,
                    const std::string& verdict) {
  return R"({"nftables": [{"metainfo": {"json_schema_version": 1}}, {"table": {"family": "inet", "name": "t"}},
    {"chain": {"family": "inet", "table": "t", "name": "c", "type": "filter", "hook": ")" +
         hook + R"(", "prio": 0, "policy": ")" + policy +
         R"("}}, {"rule": {"family": "inet", "table": "t", "chain": "c", "expr": [{"match": )" + match + "}, {\"" +
         verdict + "\": null}]}}]}";
}

constexpr const char* kFromHost =
    R"({"op": "==", "left": {"payload": {"protocol": "ether", "field": "saddr"}}, "right": "02:00:00:00:00:01"})";
constexpr const char* kNotFromHost =
    R"({"op": "!=", "left": {"payload": {"protocol": "ether", "field": "saddr"}}, "right": "02:00:00:00:00:01"})";

TEST(Steps, LinkAddressesAreThoseWithWhichPacketsArrive) {
  for (const std::string hook : {"forward", "postrouting", "input"}) {
    ReadOptions options;
    options.hook = hook_of(hook);
    for (const bool ipv6 : {false, true}) {
      AfterRouter accepts(at_hook(hook, "drop", kFromHost, "accept"), options);
      EXPECT_TRUE(accepts.passes(kHost, kRouter, ipv6)) << hook;
      EXPECT_FALSE(accepts.passes(kOtherHost, kRouter, ipv6)) << hook;
      AfterRouter others(at_hook(hook, "accept", kNotFromHost, "drop"), options);
      EXPECT_TRUE(others.passes(kHost, kRouter, ipv6)) << hook;
      EXPECT_FALSE(others.passes(kWritten, kRouter, ipv6)) << hook << ": the router's own address is no other one";
    }
  }
  AfterRouter of_iptables(filter("-A FORWARD -m mac --mac-source 02:00:00:00:00:01 -j ACCEPT\n"));
  EXPECT_TRUE(of_iptables.passes(kHost, kRouter));
  EXPECT_FALSE(of_iptables.passes(kOtherHost, kRouter));
}

TEST(Steps, PacketsWhoseArrivalIsLostAreDroppedIfRulesAskForIt) {
  for (const char* match : {kFromHost, kNotFromHost}) {
    for (const char* verdict : {"accept", "drop"}) {
      for (const bool ipv6 : {false, true}) {
        AfterRouter gateway(at_hook("forward", "accept", match, verdict));
        EXPECT_FALSE(gateway.passes(kHost, kRouter, ipv6, false)) << match << verdict;
        EXPECT_FALSE(gateway.passes(kOtherHost, kRouter, ipv6, false)) << match << verdict;
      }
    }
  }
}

TEST(Steps, PacketTypesAreThoseWithWhichPacketsArrive) {
  for (const bool ipv6 : {false, true}) {
    for (const auto& [type, destination] :
         {std::pair{"host", kRouter}, {"broadcast", kAllHosts}, {"multicast", kGroup}}) {
      const std::string match =
          std::string(R"({"op": "==", "left": {"meta": {"key": "pkttype"}}, "right": ")") + type + "\"}";
      AfterRouter gateway(at_hook("forward", "drop", match, "accept"));
      for (const MacAddress& other : {kRouter, kAllHosts, kGroup})
        EXPECT_EQ(gateway.passes(kHost, other, ipv6), other == destination) << type;
    }
  }
  AfterRouter neither(at_hook(
      "forward", "accept",
      R"({"op": "!=", "left": {"meta": {"key": "pkttype"}}, "right": {"set": ["broadcast", "multicast"]}})", "drop"));
  EXPECT_FALSE(neither.passes(kHost, kRouter));
  EXPECT_TRUE(neither.passes(kHost, kAllHosts));
  EXPECT_TRUE(neither.passes(kHost, kGroup));
  const std::string multicast = "-A FORWARD -m pkttype --pkt-type multicast -j ACCEPT\n";
  EXPECT_TRUE(AfterRouter(filter(multicast)).passes(kHost, kGroup));
  EXPECT_FALSE(AfterRouter(filter(multicast)).passes(kHost, kAllHosts));
  EXPECT_FALSE(AfterRouter(filter("-A FORWARD -m pkttype ! --pkt-type unicast -j ACCEPT\n")).passes(kHost, kRouter));
}

/// The chain begins to keep link headers when a run begins.
TEST(Steps, AReloadWithTheFirstRulesAboutLinkHeadersNeedsANewRun) {
  const Gateway without(filter("-A FORWARD -m mark --mark 1 -j ACCEPT\n"), {}, {.link_is_written = true});
  const Gateway with(filter("-A FORWARD -m mac --mac-source 02:00:00:00:00:01 -j ACCEPT\n"), {},
                     {.link_is_written = true});
  const auto changes = with.firewall->changes_from(*without.firewall);
  ASSERT_FALSE(changes);
  EXPECT_THAT(to_string(changes.error()), HasSubstr("the link header with which packets arrived: it needs a new run"));
  EXPECT_TRUE(without.firewall->changes_from(*with.firewall));
}

/// As in Linux: what the host sends has no link header yet, and is of the type `host`.
TEST(Steps, WhatTheHostSendsHasNoLinkAddresses) {
  constexpr PortIndex kHostPort = 2;
  ReadOptions options;
  options.hook = Hook::postrouting;
  options.host_has_port = true;
  for (const char* match : {kFromHost, kNotFromHost}) {
    AfterRouter gateway(at_hook("postrouting", "drop", match, "accept"), options, kHostPort);
    EXPECT_FALSE(gateway.passes(kHost, kRouter, false, true, kHostPort)) << match;
    EXPECT_FALSE(gateway.passes(kOtherHost, kRouter, false, true, kHostPort)) << match;
  }
  AfterRouter unicast(at_hook("postrouting", "drop",
                              R"({"op": "==", "left": {"meta": {"key": "pkttype"}}, "right": "host"})", "accept"),
                      options, kHostPort);
  EXPECT_TRUE(unicast.passes(kHost, kAllHosts, false, true, kHostPort));
}

TEST(IptablesTables, AFamilyWithoutTablesGetsThePoliciesOfTheOther) {
  ReadOptions options;
  options.hook = Hook::forward;
  const auto rules = rules_of(filter("") + "*security\n:FORWARD ACCEPT [0:0]\nCOMMIT\n", options);
  EXPECT_EQ(decide(rules, tuple("10.0.0.1 10.0.0.2 udp 1 2")), "0 drop") << "by the policy of table filter";
  EXPECT_EQ(decide(rules, tuple("2001:db8::1 2001:db8::2 udp 1 2")), "- drop");
}

// What an attacker has found.

TEST(Steps, ChainsWhoseLastMatchDecidesHaveNone) {
  ReadOptions options;
  options.decides = classify::Match::last;
  EXPECT_THAT(errors_of(filter("-A FORWARD -p udp -m mark --mark 1 -j ACCEPT\n"), options),
              HasSubstr("a rule with a limit, a mark or the like in a chain whose last match decides"));
}

TEST(Steps, TheGivenPolicyIsThatOfTheFilterTable) {
  ReadOptions options;
  options.hook = Hook::forward;
  options.policy = classify::Target::drop;
  const auto rules =
      rules_of("*filter\n:FORWARD ACCEPT [0:0]\nCOMMIT\n*security\n:FORWARD ACCEPT [0:0]\nCOMMIT\n", options);
  EXPECT_EQ(decide(rules, tuple("10.0.0.1 10.0.0.2 udp 1 2")), "0 drop");
}

TEST(Steps, APacketMeetsOnePartOfAMap) {
  const auto rule = [](const std::string& chain, const std::string& statements) {
    return R"(, {"rule": {"family": "ip", "table": "t", "chain": ")" + chain + R"(", "handle": 1, "expr": [)" +
           statements + "]}}";
  };
  const auto chain = [](const std::string& name, const std::string& more) {
    return R"(, {"chain": {"family": "ip", "table": "t", "name": ")" + name + R"(", "handle": 1)" + more + "}}";
  };
  const std::string mark = R"({"mangle": {"key": {"meta": {"key": "mark"}}, "value": )";
  Gateway gateway(
      R"({"nftables": [{"metainfo": {"json_schema_version": 1}}, {"table": {"family": "ip", "name": "t"}})" +
      chain("c", R"(, "type": "filter", "hook": "forward", "prio": 0, "policy": "drop")") + chain("x", "") +
      rule("x", mark + "2}}") + rule("c", mark + "1}}") +
      rule("c", R"({"vmap": {"key": {"meta": {"key": "mark"}}, "data": {"set": [[1, {"jump": {"target": "x"}}],
                       [2, {"accept": null}]]}}})") +
      "]}");
  EXPECT_FALSE(gateway.passes(udp_from("10.0.0.1")));
  EXPECT_EQ(gateway.descriptor.mark, 2U);
}

TEST(Steps, HashlimitKeepsEntriesForTheUnitOfTheRate) {
  Gateway gateway(
      filter("-A FORWARD -m hashlimit --hashlimit-above 1/hour --hashlimit-burst 1 --hashlimit-mode srcip,dstport "
             "--hashlimit-name h -j DROP\n-A FORWARD -j ACCEPT\n"));
  const PacketBuilder ping = packet().eth().ipv4("10.0.0.1", "10.9.9.9").icmp(8);
  EXPECT_TRUE(gateway.passes(ping));
  EXPECT_FALSE(gateway.passes(ping, 13)) << "without ports, too";
}

TEST(Steps, WhatARuleDoesBesidesLoggingIsDoneWithoutALog) {
  Gateway gateway(
      filter("-A FORWARD -m recent --rcheck --hitcount 2 --name x -j DROP\n-A FORWARD -m recent --set --name x -j LOG\n"
             "-A FORWARD -j ACCEPT\n"));
  EXPECT_EQ(gateway.passing(udp_from("10.0.0.1"), 4), 2U);
}

TEST(Steps, ListsThatOnlyOtherChainsChangeAreUnsupported) {
  for (const char* change :
       {"-A INPUT -p tcp -m recent --set --name x -j ACCEPT\n", "-A INPUT -m recent --name x --set\n"}) {
    const auto read = read_rules("*filter\n:INPUT ACCEPT [0:0]\n:FORWARD ACCEPT [0:0]\n" + std::string(change) +
                                     "-A FORWARD -m recent --rcheck --name x -j DROP\nCOMMIT\n",
                                 "rules", {});
    ASSERT_TRUE(read) << to_string(read.error());
    EXPECT_THAT(to_string(read->unsupported),
                HasSubstr("'recent x' is changed only by rules that packets do not pass here"));
  }
}

TEST(Steps, SegmentsWithoutASizeAreNotOfTheSizesThatARuleNames) {
  Gateway gateway(filter("-A FORWARD -p tcp -m tcpmss ! --mss 536:65535 -j DROP\n-A FORWARD -j ACCEPT\n"));
  EXPECT_FALSE(gateway.passes(syn(1)));
  const auto with = [](const std::vector<std::uint8_t>& options) {
    return packet().eth().ipv4("10.0.0.1", "10.9.9.9").tcp(1, 80, TcpHeader::kSyn, options);
  };
  EXPECT_TRUE(gateway.passes(with({2, 4, 5, 0xb4})));
  EXPECT_FALSE(gateway.passes(with({0, 2, 4, 0, 100, 0, 0, 0}))) << "Linux reads on after the end of options";
}

TEST(Steps, ConnectionsThatAreNotTrackedCountAsOneMore) {
  Gateway gateway(filter("-A FORWARD -p tcp -m connlimit --connlimit-above 0 -j DROP\n-A FORWARD -j ACCEPT\n"));
  EXPECT_FALSE(
      gateway.passes(packet().eth().ipv4("10.0.0.1", "10.9.9.9").tcp(1, 80, TcpHeader::kSyn | TcpHeader::kFin)));
}

TEST(Ipsets, OfListsAndBitmapsAreNotTakenForMoreThanTheyAre) {
  const ReadOptions options = with_ipsets(
      "create a hash:net family inet\nadd a 10.0.0.0/8\nadd a 10.0.0.5/32 nomatch\ncreate l list:set size 8\nadd l a\n"
      "create p bitmap:port range 0-100\nadd p 53\ncreate f hash:ip family inet forceadd\n"
      "create s hash:ip family inet\ncreate t hash:ip family inet timeout 1\n");
  const auto unsupported = [&](const std::string& rule) {
    const auto read = read_rules(filter("-A FORWARD " + rule + "\n"), "rules", options);
    EXPECT_TRUE(read) << to_string(read.error());
    return read && read->unsupported.size() == 1;
  };
  EXPECT_TRUE(unsupported("-m set --match-set l src -j DROP"));
  EXPECT_TRUE(unsupported("-m set ! --match-set p dst -j DROP"));
  EXPECT_TRUE(unsupported("-j SET --add-set p dst"));
  EXPECT_TRUE(unsupported("-m set --match-set f src -j DROP"));
  Gateway ports(filter("-A FORWARD -m set --match-set p dst -j ACCEPT\n"), options);
  EXPECT_TRUE(ports.passes(udp_from("10.0.0.1")));
  EXPECT_FALSE(ports.passes(packet().eth().ipv4("10.0.0.1", "10.9.9.9").sctp(1, 53)));
  Gateway bans(
      filter("-A FORWARD -p tcp -j SET --add-set  s src --timeout 1\n-A FORWARD -p icmp -j SET --add-set t src "
             "--timeout 0\n-A FORWARD -m set --match-set s src -j DROP\n-A FORWARD -m set --match-set t src -j "
             "DROP\n-A FORWARD -j ACCEPT\n"),
      options);
  EXPECT_FALSE(bans.passes(syn(1)));
  EXPECT_FALSE(bans.passes(udp_from("10.0.0.1"), 60)) << "the set has no timeouts";
  EXPECT_FALSE(bans.passes(packet().eth().ipv4("10.0.0.2", "10.9.9.9").icmp(8)));
  EXPECT_FALSE(bans.passes(udp_from("10.0.0.2"), 60)) << "for ever";
}

TEST(Ipsets, AReloadBringsAndTakesWhatTheFileLists) {
  const std::string rules =
      filter("-A FORWARD -p tcp -j SET --add-set s src\n-A FORWARD -m set --match-set s src -j ACCEPT\n");
  const std::string head = "create s hash:ip family inet\n";
  Gateway before(rules, with_ipsets(head + "add s 10.0.0.1\nadd s 10.0.0.2\n"));
  EXPECT_TRUE(before.passes(udp_from("10.0.0.1")));
  EXPECT_TRUE(before.passes(syn(1, "10.0.0.9")));
  Gateway after(rules, with_ipsets(head + "add s 10.0.0.2\nadd s 10.0.0.3\n"));
  ASSERT_TRUE(after.firewall->take_over(*before.firewall));
  EXPECT_FALSE(after.passes(udp_from("10.0.0.1")));
  EXPECT_TRUE(after.passes(udp_from("10.0.0.2")));
  EXPECT_TRUE(after.passes(udp_from("10.0.0.3")));
  EXPECT_TRUE(after.passes(udp_from("10.0.0.9"))) << "that a rule has added";
}

TEST(Ipsets, CountForEachRuleThatUsesThem) {
  std::string sets =
      "create a hash:ip\ncreate a6 hash:ip family inet6\ncreate l list:set\nadd l a\nadd l a6\n"
      "create n hash:net,net\n";
  for (int i = 0; i < 100; ++i) {
    sets += fmt::format("add a 10.0.0.{}\nadd a6 2001:db8::{:x}\n", i, i);
    sets += fmt::format("add n 10.0.{}.0/24,192.0.2.0/24\n", i);
  }
  ReadOptions options = with_ipsets(sets);
  options.most_rules = 110;  // and 16 values of sets for each
  const auto rules = [](const std::string& rule, int count) {
    std::string text = "*filter\n:FORWARD ACCEPT [0:0]\n";
    for (int i = 0; i < count; ++i) text += "-A FORWARD -m set --match-set " + rule + " -j DROP\n";
    return text + "COMMIT\n";
  };
  const auto v6 = [](const std::string& text) { return "# Generated by ip6tables-save v1.8.9\n" + text; };
  const ::testing::Matcher<std::string> refused =
      HasSubstr("too many values of sets in all rules that use them: found 'set', expected fewer (most_rules raises");
  EXPECT_EQ(errors_of(rules("a src", 17), options), "read without an error");
  EXPECT_THAT(errors_of(rules("a src", 18), options), refused);
  EXPECT_EQ(errors_of(v6(rules("a6 src", 17)), options), "read without an error");
  EXPECT_THAT(errors_of(v6(rules("a6 src", 18)), options), refused);
  EXPECT_EQ(errors_of(rules("l src", 8), options), "read without an error");
  EXPECT_THAT(errors_of(rules("l src", 9), options), refused) << "202 for the list";
  EXPECT_EQ(errors_of(rules("n src,dst", 8), options), "read without an error");
  EXPECT_THAT(errors_of(rules("n src,dst", 9), options), refused) << "two for each element";
}

TEST(ElementTable, IsEmptyAfterItWasCleared) {
  ElementTable table(1U << 20);
  const auto key = [](std::uint64_t i) { return ElementTable::Key{classify::Number{0, i}}; };
  for (int round = 0; round < 3; ++round) {
    for (std::uint64_t i = 0; i < 1000; ++i) {
      EXPECT_FALSE(table.contains(key(i), 1));
      EXPECT_TRUE(table.with(key(i), 1, 0, false, nullptr, [&](ElementTable::Element& element) {
        EXPECT_TRUE(element.is_new);
        if (i % 7 == 0 && round != 1) element.connections = new ConnectionList;  // which the table deletes
      }));
    }
    EXPECT_EQ(table.count(), 1000U);
    table.clear();
    EXPECT_EQ(table.count(), 0U);
  }
}

TEST(ElementTable, KeepsWhatItWasGivenAndForgetsWhatIsOver) {
  ElementTable table(1000);
  const auto key = [](std::uint64_t i) { return ElementTable::Key{classify::Number{0, i}}; };
  const auto add = [&](std::uint64_t i, std::uint64_t now, std::uint64_t expires) {
    return table.with(key(i), now, expires, false, nullptr, [](ElementTable::Element&) {});
  };
  for (std::uint64_t i = 0; i < 1000; ++i) EXPECT_TRUE(add(i, 1, i % 2 == 0 ? 0 : 100));
  EXPECT_FALSE(add(1000, 50, 0)) << "full";
  for (std::uint64_t i = 0; i < 1000; ++i) EXPECT_TRUE(table.contains(key(i), 50)) << i;
  for (std::uint64_t i = 0; i < 1000; ++i) EXPECT_EQ(table.contains(key(i), 100), i % 2 == 0) << i;
  for (std::uint64_t i = 1000; i < 1500; ++i) EXPECT_TRUE(add(i, 1'000'000'000, 0)) << i;
  EXPECT_FALSE(add(1500, 1'000'000'000, 0));
  for (std::uint64_t i = 0; i < 1500; ++i)
    EXPECT_EQ(table.contains(key(i), 2'000'000'000), i >= 1000 || i % 2 == 0) << i;
  for (std::uint64_t i = 0; i < 1500; ++i) table.remove(key(i));
  EXPECT_EQ(table.count(), 0U);
}

}  // namespace
}  // namespace penstock::firewall
