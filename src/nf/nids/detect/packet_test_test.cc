// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "nf/nids/detect/packet_test.h"

#include <gtest/gtest.h>

#include <deque>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "nf/nids/rules/rule_reader.h"
#include "packet/testing/packet_builder.h"
#include "stack/decoder.h"
#include "stack/tracker.h"

namespace penstock::nids {
namespace {

using penstock::testing::packet;
using penstock::testing::PacketBuilder;
using Frame = penstock::testing::Bytes;
using stack::TrackedPacket;

Frame bytes(std::initializer_list<int> values) { return {values.begin(), values.end()}; }

/// Decodes frames and keeps all packets of a test. A frame is represented by its last packet.
class PacketTest : public ::testing::Test {
 protected:
  TrackedPacket& decode(Frame frame) {
    frames_.push_back(std::move(frame));
    frames_.back().shrink_to_fit();
    PacketDescriptor descriptor;
    descriptor.timestamp_ns = 1;
    descriptor.length = descriptor.wire_length = static_cast<std::uint32_t>(frames_.back().size());
    packets_.emplace_back();
    decoder_.decode({frames_.back().data(), &descriptor}, frames_.size(),
                    [&](stack::DecodedPacket& p) noexcept { packets_.back().packet = p; });
    return packets_.back();
  }
  TrackedPacket& decode(const PacketBuilder& builder) { return decode(builder.bytes()); }

  static Rule rule(const std::string& text) {
    auto rules = read_rules_text(text);
    EXPECT_TRUE(rules && rules->rules.size() == 1) << text;
    if (!rules || rules->rules.size() != 1) return {};
    return std::move(rules->rules[0]);
  }

  /// Whether one option matches a packet.
  static bool option(const std::string& text, const TrackedPacket& packet) {
    const Rule read = rule("alert ip any any -> any any (" + text + "; sid:1;)");
    EXPECT_EQ(read.packet_matches.size(), 1U) << text;
    return read.packet_matches.size() == 1 && holds(read.packet_matches[0], packet);
  }
  static bool header(const std::string& text, const TrackedPacket& packet) {
    return header_holds(rule("alert " + text + " (sid:1;)"), packet);
  }

 private:
  stack::TrackerCounters counters_;
  stack::Decoder decoder_{stack::TrackerOptions{}, counters_};
  std::deque<Frame> frames_;
  std::deque<TrackedPacket> packets_;
};

constexpr std::uint8_t kSyn = TcpHeader::kSyn, kAck = TcpHeader::kAck, kPsh = TcpHeader::kPsh, kEce = TcpHeader::kEce;

PacketBuilder tcp(std::uint8_t flags = kAck) {
  return packet().eth().ipv4("10.0.0.1", "192.0.2.7").tcp(4000, 80, flags);
}

TEST_F(PacketTest, TestsAddressesAndPorts) {
  const TrackedPacket& p = decode(tcp());
  EXPECT_TRUE(header("tcp any any -> any any", p));
  EXPECT_TRUE(header("tcp 10.0.0.0/8 4000 -> 192.0.2.7 80", p));
  EXPECT_FALSE(header("tcp 10.0.0.2 any -> any any", p));
  EXPECT_FALSE(header("tcp any any -> !192.0.2.0/24 any", p));
  EXPECT_TRUE(header("tcp any [1:5000,!80] -> any !81", p));
  EXPECT_FALSE(header("tcp any 80 -> any any", p));
  EXPECT_FALSE(header("tcp 192.0.2.7 80 -> 10.0.0.1 4000", p));
  EXPECT_TRUE(header("tcp 192.0.2.7 80 <> 10.0.0.1 4000", p));
  EXPECT_FALSE(header("tcp 192.0.2.7 81 <> 10.0.0.1 any", p));
  EXPECT_FALSE(header("tcp 2001:db8::/32 any -> any any", p));
  const TrackedPacket& v6 = decode(packet().eth().ipv6("2001:db8::1", "2001:db8::2").udp(53, 5353));
  EXPECT_TRUE(header("udp 2001:db8::/32 53 -> 2001:db8::2 any", v6));
  EXPECT_FALSE(header("udp 10.0.0.0/8 any -> any any", v6));
  // A packet without ports only matches if the rule tests none.
  const TrackedPacket& icmp = decode(packet().eth().ipv4("10.0.0.1", "10.0.0.2").icmp(8));
  EXPECT_TRUE(header("ip any any -> any any", icmp));
  EXPECT_FALSE(header("ip any any -> any 80", icmp));
  const TrackedPacket& fragment =
      decode(packet().eth().ipv4("10.0.0.1", "10.0.0.2", 64, {}, 5).protocol(6).payload("12345678"));
  EXPECT_TRUE(header("tcp any any -> any any", fragment));
  EXPECT_FALSE(header("tcp any any -> any 80", fragment));
}

TEST_F(PacketTest, TestsProtocols) {
  const auto holds_for = [](const TrackedPacket& p) {
    std::string names;
    const std::vector<std::pair<RuleProtocol, std::string>> all{
        {RuleProtocol::ip, "ip"},         {RuleProtocol::ipv4, "ipv4"},   {RuleProtocol::ipv6, "ipv6"},
        {RuleProtocol::tcp, "tcp"},       {RuleProtocol::tcp_pkt, "pkt"}, {RuleProtocol::tcp_stream, "stream"},
        {RuleProtocol::udp, "udp"},       {RuleProtocol::icmp, "icmp"},   {RuleProtocol::icmpv4, "icmpv4"},
        {RuleProtocol::icmpv6, "icmpv6"}, {RuleProtocol::sctp, "sctp"},   {RuleProtocol::pkthdr, "pkthdr"}};
    for (const auto& [protocol, name] : all) {
      if (protocol_holds(protocol, p.packet)) names += name + " ";
    }
    return names;
  };
  EXPECT_EQ(holds_for(decode(tcp())), "ip ipv4 tcp pkt stream pkthdr ");
  EXPECT_EQ(holds_for(decode(packet().eth().ipv6("::1", "::2").udp(1, 2))), "ip ipv6 udp pkthdr ");
  EXPECT_EQ(holds_for(decode(packet().eth().ipv4("10.0.0.1", "10.0.0.2").icmp(8))), "ip ipv4 icmp icmpv4 pkthdr ");
  EXPECT_EQ(holds_for(decode(packet().eth().ipv6("::1", "::2").icmp(128))), "ip ipv6 icmp icmpv6 pkthdr ");
  EXPECT_EQ(holds_for(decode(packet().eth().ipv4("10.0.0.1", "10.0.0.2").sctp(1, 2))), "ip ipv4 sctp pkthdr ");
  EXPECT_EQ(holds_for(decode(packet().eth().ether_type(0x0806).payload("arp"))), "pkthdr ");
}

TEST_F(PacketTest, TestsFlows) {
  TrackedPacket& p = decode(tcp());
  const auto flow = [&](const std::string& text, bool in_stream = false) {
    return flow_holds(rule("alert tcp any any -> any any (flow:" + text + "; sid:1;)").flow, p, in_stream);
  };
  // Without a flow, the direction is to the server; nothing else is known.
  EXPECT_TRUE(flow("to_server"));
  EXPECT_FALSE(flow("to_client"));
  EXPECT_FALSE(flow("established"));
  EXPECT_FALSE(flow("not_established"));
  EXPECT_FALSE(flow("stateless"));
  EXPECT_FALSE(flow("to_server,stateless"));
  EXPECT_TRUE(flow("no_stream"));
  EXPECT_TRUE(flow_holds({}, p, false));

  stack::Flow flow_of_packet;
  p.flow = &flow_of_packet;
  p.direction = stack::Direction::to_client;
  EXPECT_TRUE(flow("to_client"));
  EXPECT_TRUE(flow("from_server"));
  EXPECT_FALSE(flow("to_server"));
  EXPECT_FALSE(flow("established"));
  EXPECT_TRUE(flow("to_client,not_established"));
  EXPECT_TRUE(flow("stateless"));
  p.established = true;
  EXPECT_TRUE(flow("to_client,established"));
  EXPECT_FALSE(flow("from_client,established"));
  EXPECT_FALSE(flow("not_established"));
  EXPECT_TRUE(flow("only_stream", true));
  EXPECT_FALSE(flow("only_stream", false));
  EXPECT_TRUE(flow("no_stream", false));
  EXPECT_FALSE(flow("no_stream", true));
  EXPECT_TRUE(flow("no_frag"));
  EXPECT_FALSE(flow("only_frag"));
  p.packet.reassembled = true;
  EXPECT_FALSE(flow("no_frag"));
  EXPECT_TRUE(flow("established,only_frag"));
}

TEST_F(PacketTest, TestsTcpFlags) {
  const auto with = [&](std::uint8_t flags, const std::string& asked) {
    return option("flags:" + asked, decode(tcp(flags)));
  };
  EXPECT_TRUE(with(kSyn, "S"));
  EXPECT_FALSE(with(kSyn | kAck, "S"));
  EXPECT_TRUE(with(kSyn | kAck, "SA"));
  EXPECT_TRUE(with(kSyn | kAck, "S+"));
  EXPECT_TRUE(with(kSyn, "+S"));
  EXPECT_FALSE(with(kAck, "S+"));
  EXPECT_TRUE(with(kAck, "*SA"));
  EXPECT_FALSE(with(kPsh, "*SA"));
  EXPECT_TRUE(with(kAck, "!S"));
  EXPECT_TRUE(with(kSyn, "!SA"));
  EXPECT_FALSE(with(kSyn | kAck | kPsh, "!SA"));
  EXPECT_TRUE(with(kSyn | kEce, "S,12"));
  EXPECT_FALSE(with(kSyn | kEce, "S,1"));
  EXPECT_TRUE(with(0, "0"));
  EXPECT_FALSE(with(kSyn, "0"));
  // Without flags, `!` means any flag.
  EXPECT_TRUE(with(kSyn, "!0"));
  EXPECT_FALSE(with(0, "!0"));
  EXPECT_FALSE(option("flags:S", decode(packet().eth().ipv4("10.0.0.1", "10.0.0.2").udp(1, 2))));
}

TEST_F(PacketTest, TestsThePayloadsSize) {
  TrackedPacket& p = decode(tcp().payload("12345"));
  EXPECT_TRUE(option("dsize:5", p));
  EXPECT_FALSE(option("dsize:!5", p));
  EXPECT_TRUE(option("dsize:!4", p));
  EXPECT_TRUE(option("dsize:>4", p));
  EXPECT_FALSE(option("dsize:<5", p));
  EXPECT_TRUE(option("dsize:4<>6", p));
  EXPECT_FALSE(option("dsize:5<>10", p));
  EXPECT_TRUE(option("dsize:0", decode(tcp())));
  p.stream_end = true;
  EXPECT_FALSE(option("dsize:5", p));
  EXPECT_FALSE(option("dsize:!4", p));
}

TEST_F(PacketTest, TestsTcpNumbers) {
  TrackedPacket& p =
      decode(packet().eth().ipv4("10.0.0.1", "10.0.0.2").tcp(1, 2, kSyn, bytes({1, 3, 3, 7, 2, 4, 0x05, 0xb4})));
  EXPECT_TRUE(option("seq:1", p));
  EXPECT_FALSE(option("seq:2", p));
  EXPECT_TRUE(option("ack:2", p));
  EXPECT_TRUE(option("window:1000", p));
  EXPECT_TRUE(option("window:!999", p));
  EXPECT_TRUE(option("tcp.mss:1460", p));
  EXPECT_TRUE(option("tcp.mss:1400-1500", p));
  EXPECT_FALSE(option("tcp.mss:<536", p));
  EXPECT_FALSE(option("tcp.mss:>0", decode(tcp())));
  // An invalid length ends the options.
  EXPECT_FALSE(
      option("tcp.mss:>0",
             decode(packet().eth().ipv4("10.0.0.1", "10.0.0.2").tcp(1, 2, kSyn, bytes({3, 0, 0, 0, 2, 4, 5, 0xb4})))));
  p.stream_end = true;
  EXPECT_FALSE(option("seq:1", p));
  EXPECT_FALSE(option("tcp.mss:1460", p));
}

TEST_F(PacketTest, TestsIpNumbers) {
  Frame frame = packet().eth().ipv4("10.0.0.1", "10.0.0.2", 17).tcp(1, 2).bytes();
  frame[15] = 0x1f;  // TOS
  TrackedPacket& v4 = decode(frame);
  EXPECT_TRUE(option("ttl:17", v4));
  EXPECT_TRUE(option("ttl:<18", v4));
  EXPECT_FALSE(option("ttl:>17", v4));
  EXPECT_TRUE(option("ttl:16-18", v4));
  EXPECT_TRUE(option("tos:31", v4));
  EXPECT_TRUE(option("tos:x1f", v4));
  EXPECT_FALSE(option("tos:!31", v4));
  EXPECT_TRUE(option("id:4660", v4));
  EXPECT_TRUE(option("ip_proto:6", v4));
  EXPECT_TRUE(option("ip_proto:tcp", v4));
  EXPECT_TRUE(option("ip_proto:!udp", v4));
  EXPECT_TRUE(option("ip_proto:<17", v4));
  const TrackedPacket& v6 = decode(packet().eth().ipv6("2001:db8::1", "2001:db8::2", 9).tcp(1, 2));
  EXPECT_TRUE(option("ttl:9", v6));
  EXPECT_FALSE(option("tos:0", v6));
  EXPECT_FALSE(option("id:0", v6));
  EXPECT_TRUE(option("ip_proto:6", v6));
  v4.stream_end = true;
  EXPECT_FALSE(option("ttl:17", v4));
  EXPECT_TRUE(option("ip_proto:6", v4));
}

TEST_F(PacketTest, TestsSameAddresses) {
  EXPECT_FALSE(option("sameip", decode(tcp())));
  EXPECT_TRUE(option("sameip", decode(packet().eth().ipv4("10.0.0.1", "10.0.0.1").tcp(1, 2))));
  EXPECT_TRUE(option("sameip", decode(packet().eth().ipv6("::5", "::5").tcp(1, 2))));
  EXPECT_FALSE(option("sameip", decode(packet().eth().ether_type(0x0806).payload("arp"))));
}

TEST_F(PacketTest, TestsIpOptions) {
  const auto with = [&](std::initializer_list<int> options, const std::string& asked) {
    return option("ipopts:" + asked, decode(packet().eth().ipv4("10.0.0.1", "10.0.0.2", 64, bytes(options)).tcp(1, 2)));
  };
  EXPECT_TRUE(with({7, 3, 4, 0}, "rr"));
  EXPECT_TRUE(with({7, 3, 4, 0}, "eol"));
  EXPECT_FALSE(with({7, 3, 4, 0}, "nop"));
  EXPECT_TRUE(with({1, 7, 3, 4}, "rr"));
  EXPECT_TRUE(with({1, 7, 3, 4}, "nop"));
  EXPECT_FALSE(with({1, 7, 3, 4}, "eol"));
  EXPECT_TRUE(with({0x44, 8, 9, 0, 0, 0, 0, 0}, "ts"));
  EXPECT_TRUE(with({0x83, 7, 4, 10, 0, 0, 1, 0}, "lsrr"));
  EXPECT_TRUE(with({0x89, 7, 4, 10, 0, 0, 1, 0}, "ssrr"));
  EXPECT_TRUE(with({0x88, 4, 0, 1}, "satid"));
  EXPECT_TRUE(with({0x85, 3, 0, 0}, "esec"));
  EXPECT_TRUE(with({0x82, 11, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}, "sec"));
  EXPECT_TRUE(with({1, 1, 1, 1}, "any"));
  EXPECT_FALSE(with({}, "any"));
  // Bytes after the end are not options, and a malformed option ends them.
  EXPECT_FALSE(with({0, 7, 3, 4}, "rr"));
  EXPECT_FALSE(with({7, 9, 4, 0}, "rr"));
  EXPECT_FALSE(with({7, 1, 4, 0}, "rr"));
  EXPECT_FALSE(with({7, 3, 5, 0}, "rr"));
}

TEST_F(PacketTest, TestsFragments) {
  const auto with = [&](std::uint16_t fragment, const std::string& asked) {
    return option(
        asked, decode(packet().eth().ipv4("10.0.0.1", "10.0.0.2", 64, {}, fragment).protocol(99).payload("12345678")));
  };
  EXPECT_TRUE(with(0x4000, "fragbits:D"));
  EXPECT_FALSE(with(0x6000, "fragbits:D"));
  EXPECT_TRUE(with(0x2000, "fragbits:M"));
  EXPECT_TRUE(with(0x8000, "fragbits:R"));
  EXPECT_TRUE(with(0x6000, "fragbits:+D"));
  EXPECT_FALSE(with(0x4000, "fragbits:+D"));  // needs other bits too
  EXPECT_TRUE(with(0x4000, "fragbits:*MD"));
  EXPECT_FALSE(with(0x8000, "fragbits:*MD"));
  EXPECT_TRUE(with(0x4000, "fragbits:!MD"));
  EXPECT_FALSE(with(0x6000, "fragbits:!MD"));
  EXPECT_TRUE(with(0x2000, "fragoffset:0"));
  EXPECT_TRUE(with(0x0005, "fragoffset:5"));
  EXPECT_TRUE(with(0x0005, "fragoffset:>4"));
  EXPECT_FALSE(with(0x0005, "fragoffset:<5"));
  const auto v6 = packet().eth().ipv6("::1", "::2").fragment6(0x28).protocol(6).payload("12345678");
  EXPECT_TRUE(option("fragoffset:40", decode(v6)));  // in bytes
  EXPECT_TRUE(option("fragoffset:0", decode(packet().eth().ipv6("::1", "::2").fragment6(0).protocol(99).payload("x"))));
  EXPECT_FALSE(option("fragoffset:0", decode(packet().eth().ipv6("::1", "::2").tcp(1, 2))));
  EXPECT_FALSE(option("fragbits:!D", decode(v6)));
}

TEST_F(PacketTest, TestsIcmp) {
  Frame frame = packet().eth().ipv4("10.0.0.1", "10.0.0.2").icmp(8, 0).bytes();
  const auto number = [](Frame& f, std::size_t at, int value) {
    f[at] = static_cast<std::uint8_t>(value >> 8), f[at + 1] = static_cast<std::uint8_t>(value);
  };
  number(frame, 38, 0x1234);
  number(frame, 40, 0x5678);
  const TrackedPacket& echo = decode(frame);
  EXPECT_TRUE(option("itype:8", echo));
  EXPECT_TRUE(option("itype:<9", echo));
  EXPECT_TRUE(option("itype:7<>9", echo));
  EXPECT_FALSE(option("itype:>8", echo));
  EXPECT_TRUE(option("icode:0", echo));
  EXPECT_TRUE(option("icmp_id:4660", echo));
  EXPECT_TRUE(option("icmp_seq:22136", echo));
  EXPECT_FALSE(option("icmp_seq:1", echo));
  // Only queries and replies have them.
  for (const int type : {0, 8, 13, 14, 15, 16, 17, 18}) {
    auto builder =
        packet().eth().ipv4("10.0.0.1", "10.0.0.2").icmp(static_cast<std::uint8_t>(type)).payload("0123456789ab");
    EXPECT_TRUE(option("icmp_id:0", decode(builder))) << type;
  }
  EXPECT_FALSE(option("icmp_id:0", decode(packet().eth().ipv4("10.0.0.1", "10.0.0.2").icmp(11).payload("x"))));
  Frame v6 = packet().eth().ipv6("::1", "::2").icmp(129).bytes();
  number(v6, 58, 77);
  EXPECT_TRUE(option("icmp_id:77", decode(v6)));
  Frame too_big = packet().eth().ipv6("::1", "::2").icmp(2).payload(std::string(48, 'x')).bytes();
  number(too_big, 60, 1280);
  EXPECT_TRUE(option("icmpv6.mtu:1280", decode(too_big)));
  EXPECT_TRUE(option("icmpv6.mtu:<1281", decode(too_big)));
  EXPECT_FALSE(option("icmpv6.mtu:0", decode(v6)));
  EXPECT_FALSE(option("icmp_id:0", decode(too_big)));
  EXPECT_FALSE(option("itype:6", decode(tcp())));
}

TEST_F(PacketTest, ComputesChecksums) {
  struct Case {
    const char* option;
    Frame frame;
    std::size_t wrong;  // index of a byte that the checksum covers
  };
  const auto v4 = [] { return packet().eth().ipv4("10.0.0.1", "192.0.2.7"); };
  const auto v6 = [] { return packet().eth().ipv6("2001:db8::1", "2001:db8::2"); };
  const std::vector<Case> cases{
      {"ipv4-csum", v4().protocol(99).payload("abcdefgh").bytes(), 22},
      {"tcpv4-csum", v4().tcp(1, 2).payload("abc").bytes(), 14 + 20 + 22},
      {"tcpv6-csum", v6().tcp(1, 2).payload("abc").bytes(), 14 + 40 + 22},
      {"udpv4-csum", v4().udp(1, 2).payload("abc").bytes(), 14 + 20 + 8},
      {"udpv6-csum", v6().udp(1, 2).payload("abc").bytes(), 14 + 40 + 8},
      {"icmpv4-csum", v4().icmp(8).payload("abc").bytes(), 14 + 20 + 8},
      {"icmpv6-csum", v6().icmp(128).payload("abc").bytes(), 14 + 40 + 8},
  };
  for (const Case& c : cases) {
    const std::string name = c.option;
    EXPECT_TRUE(option(name + ":valid", decode(c.frame))) << name;
    EXPECT_FALSE(option(name + ":invalid", decode(c.frame))) << name;
    Frame wrong = c.frame;
    wrong[c.wrong] ^= 1;
    EXPECT_FALSE(option(name + ":valid", decode(wrong))) << name;
    EXPECT_TRUE(option(name + ":invalid", decode(wrong))) << name;
    for (const Case& other : cases) {
      // A packet of another protocol does not have this checksum, so it is neither valid nor invalid.
      if (&other == &c || (name == "ipv4-csum" && std::string(other.option).find("v4") != std::string::npos)) continue;
      EXPECT_FALSE(option(name + ":invalid", decode(other.frame))) << name << " of " << other.option;
      EXPECT_FALSE(option(name + ":valid", decode(other.frame))) << name << " of " << other.option;
    }
  }
  Frame none = cases[3].frame;
  none[14 + 20 + 6] = none[14 + 20 + 7] = 0;
  EXPECT_FALSE(option("udpv4-csum:valid", decode(none)));
  EXPECT_FALSE(option("udpv4-csum:invalid", decode(none)));
}

TEST_F(PacketTest, TestsEvents) {
  TrackedPacket& p = decode(tcp());
  p.packet.events.set(stack::decode_event_of("ipv4.pkt_too_small")->index);
  EXPECT_TRUE(option("decode-event:ipv4.pkt_too_small", p));
  EXPECT_FALSE(option("decode-event:ipv4.hlen_too_small", p));
  p.stream_events.set(stack::stream_event_of("3whs_synack_with_wrong_ack")->index);
  EXPECT_TRUE(option("stream-event:3whs_synack_with_wrong_ack", p));
  EXPECT_FALSE(option("stream-event:3whs_ack_in_wrong_dir", p));
}

/// Which options match the packets of a connection, in order.
struct OptionsOfStream final : stack::PacketSink {
  explicit OptionsOfStream(std::string option)
      : rules(*read_rules_text("alert ip any any -> any any (stream_size:" + option + "; sid:1;)")) {}
  void packet(stack::TrackedPacket& packet) noexcept override {
    if (!packet.stream_end) held += holds(rules.rules.at(0).packet_matches.at(0), packet) ? '1' : '0';
  }
  RuleSet rules;
  std::string held;
};

TEST_F(PacketTest, TestsTheSizesOfStreams) {
  EXPECT_FALSE(option("stream_size:either,>=,0", decode(tcp())));  // without a session

  // The client sends 5 bytes, then the server 3. The SYN counts as one byte.
  const auto client = packet().eth().ipv4("10.0.0.1", "10.0.0.2");
  const auto server = packet().eth().ipv4("10.0.0.2", "10.0.0.1");
  std::vector<Frame> frames;
  const auto add = [&](PacketBuilder builder, bool from_client, std::uint8_t flags, int sequence, int ack,
                       std::string_view payload) {
    builder.tcp(from_client ? 4000 : 80, from_client ? 80 : 4000, flags).payload(payload);
    Frame frame = builder.bytes();
    frame[14 + 20 + 7] = static_cast<std::uint8_t>(sequence);
    frame[14 + 20 + 11] = static_cast<std::uint8_t>(ack);
    frames.push_back(std::move(frame));
  };
  add(client, true, kSyn, 100, 0, "");
  add(server, false, kSyn | kAck, 200, 101, "");
  add(client, true, kAck, 101, 201, "");
  add(client, true, kAck, 101, 201, "12345");
  add(server, false, kAck, 201, 106, "abc");
  const auto held = [&](const std::string& text) {
    OptionsOfStream options(text);
    stack::Tracker tracker{stack::TrackerOptions{}};
    std::uint64_t number = 0;
    for (Frame& frame : frames) {
      PacketDescriptor descriptor;
      descriptor.timestamp_ns = ++number;
      descriptor.length = descriptor.wire_length = static_cast<std::uint32_t>(frame.size());
      tracker.track({frame.data(), &descriptor}, number, options);
    }
    return options.held;
  };
  EXPECT_EQ(held("client,=,1"), "11100");
  EXPECT_EQ(held("client,>,5"), "00011");
  EXPECT_EQ(held("server,=,4"), "00001");
  EXPECT_EQ(held("both,>=,4"), "00001");
  EXPECT_EQ(held("either,>=,4"), "00011");
}

TEST_F(PacketTest, ReturnsTheBytesOfHeaders) {
  const auto size = [](Buffer buffer, const TrackedPacket& p) { return header_buffer(buffer, p.packet).size(); };
  const TrackedPacket& p = decode(packet()
                                      .eth()
                                      .ipv4("10.0.0.1", "10.0.0.2", 64, bytes({1, 1, 1, 0}))
                                      .tcp(1, 2, kSyn, bytes({1, 1, 1, 0}))
                                      .payload("x"));
  EXPECT_EQ(size(Buffer::ipv4_header, p), 24U);
  EXPECT_EQ(header_buffer(Buffer::ipv4_header, p.packet)[0], 0x46);
  EXPECT_EQ(size(Buffer::tcp_header, p), 24U);
  EXPECT_EQ(header_buffer(Buffer::tcp_header, p.packet)[12], 0x60);
  for (const Buffer buffer : {Buffer::ipv6_header, Buffer::udp_header, Buffer::icmpv4_header, Buffer::icmpv6_header,
                              Buffer::payload, Buffer::base64_data}) {
    EXPECT_EQ(header_buffer(buffer, p.packet).data(), nullptr);
  }
  const TrackedPacket& v6 = decode(packet().eth().ipv6("::1", "::2").extension(60).udp(1, 2).payload("x"));
  EXPECT_EQ(size(Buffer::ipv6_header, v6), 48U);
  EXPECT_EQ(size(Buffer::udp_header, v6), 8U);
  EXPECT_EQ(size(Buffer::icmpv6_header, decode(packet().eth().ipv6("::1", "::2").icmp(128).payload("abcd"))), 8U);
  const auto icmp = [] { return packet().eth().ipv4("10.0.0.1", "10.0.0.2"); };
  EXPECT_EQ(size(Buffer::icmpv4_header, decode(icmp().icmp(8).payload("abcd"))), 8U);
  // A router advertisement: one address of two words.
  Frame advertisement = icmp().icmp(9).payload("12345678").bytes();
  advertisement[38] = 1;
  advertisement[39] = 2;
  EXPECT_EQ(size(Buffer::icmpv4_header, decode(advertisement)), 16U);
}

}  // namespace
}  // namespace penstock::nids
