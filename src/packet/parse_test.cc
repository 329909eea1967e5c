// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "packet/parse_core.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>

#include "packet/checksum.h"
#include "packet/field_range.h"
#include "packet/flow_hash.h"
#include "packet/parse_plain.h"
#include "packet/testing/packet_builder.h"
#include "packet/testing/random_frames.h"

namespace penstock {
namespace {

using testing::Bytes;
using testing::packet;
using L = PacketLayout;

PacketLayout parse_all(const Bytes& bytes, LinkType link = LinkType::ethernet) {
  const auto length = static_cast<std::uint32_t>(bytes.size());
  return parse(bytes.data(), length, length, link);
}

TEST(Parse, FindsTheHeadersOfATcpSegment) {
  const Bytes bytes = packet().eth().ipv4("10.0.0.1", "10.0.0.2").tcp(1000, 80).payload("hello").padded_to(80).bytes();
  const L l = parse_all(bytes);
  EXPECT_EQ(l.network, NetworkLayer::ipv4);
  EXPECT_EQ(l.network_offset, 14);
  EXPECT_EQ(l.transport, ip_protocol::kTcp);
  EXPECT_EQ(l.transport_offset, 34);
  EXPECT_EQ(l.payload_offset, 54);
  EXPECT_EQ(l.end, 59U) << "padding is not payload";
  EXPECT_EQ(l.flags, L::kNetworkHeader | L::kTransportHeader | L::kPorts);
}

TEST(Parse, SkipsVlanTagsAndIpv4Options) {
  const Bytes options(8, 1);
  const L l = parse_all(packet()
                            .eth()
                            .vlan(0x2007, ether_type::kQinQ)
                            .vlan(9)
                            .ipv4("10.0.0.1", "10.0.0.2", 64, options)
                            .udp(53, 4000)
                            .bytes());
  EXPECT_EQ(l.vlan_count, 2);
  EXPECT_EQ(l.vlan_tci, 0x2007) << "the outer tag";
  EXPECT_EQ(l.network_offset, 22);
  EXPECT_EQ(l.transport_offset, 22 + 28);
  EXPECT_EQ(l.flags, L::kNetworkHeader | L::kTransportHeader | L::kPorts | L::kOptions);
}

TEST(Parse, SkipsIpv6ExtensionHeaders) {
  const L l = parse_all(packet()
                            .eth()
                            .ipv6("2001:db8::1", "2001:db8::2")
                            .extension(ip_protocol::kHopByHop, 2)
                            .extension(ip_protocol::kRouting)
                            .extension(ip_protocol::kDestinationOptions)
                            .sctp(1, 2)
                            .bytes());
  EXPECT_EQ(l.network, NetworkLayer::ipv6);
  EXPECT_EQ(l.transport, ip_protocol::kSctp);
  EXPECT_EQ(l.transport_offset, 14 + 40 + 16 + 8 + 8);
  EXPECT_TRUE(l.has(L::kTransportHeader));
  EXPECT_TRUE(l.has(L::kOptions));
}

TEST(Parse, ALaterFragmentHasNoTransportHeader) {
  const L first = parse_all(packet().eth().ipv4("10.0.0.1", "10.0.0.2", 64, {}, 0x2000).udp(1, 2).bytes());
  EXPECT_TRUE(first.has(L::kFragment));
  EXPECT_TRUE(first.has(L::kTransportHeader));
  const L later = parse_all(packet().eth().ipv4("10.0.0.1", "10.0.0.2", 64, {}, 185).udp(1, 2).bytes());
  EXPECT_TRUE(later.has(L::kLaterFragment));
  EXPECT_FALSE(later.has(L::kTransportHeader));
  EXPECT_EQ(later.transport, ip_protocol::kUdp);
  EXPECT_FALSE(first.has(L::kPorts) || later.has(L::kPorts)) << "all fragments hash alike";
  const L six = parse_all(packet().eth().ipv6("::1", "::2").fragment6(8).udp(1, 2).bytes());
  EXPECT_TRUE(six.has(L::kLaterFragment));
  EXPECT_FALSE(six.has(L::kTransportHeader));
  EXPECT_EQ(six.transport, ip_protocol::kUdp);
  const L atomic = parse_all(packet().eth().ipv6("::1", "::2").fragment6(0).udp(1, 2).bytes());
  EXPECT_FALSE(atomic.has(L::kFragment)) << "RFC 6946";
  EXPECT_TRUE(atomic.has(L::kTransportHeader));
}

TEST(Parse, DistinguishesATruncatedCaptureFromAMalformedPacket) {
  const Bytes bytes = packet().eth().ipv4("10.0.0.1", "10.0.0.2").tcp(1, 2).payload("0123456789").bytes();
  const auto wire = static_cast<std::uint32_t>(bytes.size());
  const L cut_in_payload = parse(bytes.data(), 60, wire, LinkType::ethernet);
  EXPECT_EQ(cut_in_payload.flags, L::kNetworkHeader | L::kTransportHeader | L::kPorts | L::kTruncated);
  EXPECT_EQ(cut_in_payload.end, 60U);
  const L cut_in_tcp = parse(bytes.data(), 40, wire, LinkType::ethernet);
  EXPECT_EQ(cut_in_tcp.flags, L::kNetworkHeader | L::kPorts | L::kTruncated);
  const L cut_in_ports = parse(bytes.data(), 37, wire, LinkType::ethernet);
  EXPECT_EQ(cut_in_ports.flags, L::kNetworkHeader | L::kTruncated);
  const L cut_in_ip = parse(bytes.data(), 20, wire, LinkType::ethernet);
  EXPECT_EQ(cut_in_ip.flags, L::kTruncated);
  const L short_on_the_wire = parse(bytes.data(), 40, 40, LinkType::ethernet);
  EXPECT_TRUE(short_on_the_wire.has(L::kMalformed)) << "the IP length exceeds the frame";
}

TEST(Parse, RefusesContradictions) {
  Bytes bytes = packet().eth().ipv4("10.0.0.1", "10.0.0.2").tcp(1, 2).bytes();
  const auto with = [&](std::size_t at, std::uint8_t value) {
    Bytes changed = bytes;
    changed[at] = value;
    return parse_all(changed);
  };
  EXPECT_TRUE(with(14, 0x44).has(L::kMalformed)) << "header length 16";
  EXPECT_TRUE(with(14, 0x55).has(L::kMalformed)) << "version 5";
  EXPECT_TRUE(with(17, 19).has(L::kMalformed)) << "total length below the header's";
  EXPECT_TRUE(with(17, 41).has(L::kMalformed)) << "total length beyond the frame";
  EXPECT_TRUE(with(46, 0x40).has(L::kMalformedTransport)) << "TCP data offset 16";
  EXPECT_TRUE(with(46, 0x60).has(L::kMalformedTransport)) << "TCP options beyond the packet";
  EXPECT_FALSE(with(46, 0x60).has(L::kTransportHeader));
}

TEST(Parse, IgnoresTheUdpLength) {
  const Bytes sound = packet().eth().ipv4("10.0.0.1", "10.0.0.2").udp(1, 2).payload("hello").padded_to(60).bytes();
  const L l = parse_all(sound);
  for (const int length : {0, 7, 8, 14, 0xffff}) {
    Bytes bytes = sound;
    bytes[38] = static_cast<std::uint8_t>(length >> 8);
    bytes[39] = static_cast<std::uint8_t>(length);
    EXPECT_TRUE(parse_all(bytes) == l) << length;
  }
  EXPECT_EQ(l.flags, L::kNetworkHeader | L::kTransportHeader | L::kPorts);
  EXPECT_EQ(l.end - l.payload_offset, 5) << "the end is IP's";
}

TEST(Parse, ReadsEveryLinkTypeThatCarriesIp) {
  const Bytes four = packet().ipv4("10.0.0.1", "10.0.0.2").udp(1, 2).bytes();
  const Bytes six = packet().ipv6("::1", "::2").udp(1, 2).bytes();
  const auto parse_after = [&](Bytes header, const Bytes& ip, LinkType link) {
    header.insert(header.end(), ip.begin(), ip.end());
    return parse_all(header, link);
  };
  Bytes sll(16);
  sll[14] = 0x08;
  Bytes sll2(20);
  sll2[0] = 0x86;
  sll2[1] = 0xdd;
  for (const L& l :
       {parse_after({}, four, LinkType::raw_ip), parse_after({2, 0, 0, 0}, four, LinkType::null_host),
        parse_after({0, 0, 0, 2}, four, LinkType::null_host), parse_after({0, 0, 0, 2}, four, LinkType::loop),
        parse_after(sll, four, LinkType::linux_sll), parse_after({0xff, 3, 0, 0x21}, four, LinkType::ppp),
        parse_after({0x21}, four, LinkType::ppp), parse_after({0x0f, 0, 8, 0}, four, LinkType::cisco_hdlc)}) {
    EXPECT_EQ(l.network, NetworkLayer::ipv4);
    EXPECT_TRUE(l.has(L::kTransportHeader));
  }
  for (const L& l : {parse_after({}, six, LinkType::raw_ip), parse_after({30, 0, 0, 0}, six, LinkType::null_host),
                     parse_after({0, 0, 0, 10}, six, LinkType::loop), parse_after(sll2, six, LinkType::linux_sll2),
                     parse_after({0, 0x57}, six, LinkType::ppp)}) {
    EXPECT_EQ(l.network, NetworkLayer::ipv6);
    EXPECT_TRUE(l.has(L::kTransportHeader));
  }
}

TEST(Parse, SkipsVlanTagsAfterLinuxCookedHeaders) {
  const Bytes ip = packet().ipv4("10.0.0.1", "10.0.0.2").udp(1, 2).bytes();
  const Bytes tags{0x20, 0x07, 0x81, 0x00, 0, 9, 0x08, 0x00};  // after an 802.1ad type
  const auto tagged_frame = [&](std::size_t header, std::size_t type_at) {
    Bytes frame(header);
    frame[type_at] = 0x88;
    frame[type_at + 1] = 0xa8;
    frame.insert(frame.end(), tags.begin(), tags.end());
    frame.insert(frame.end(), ip.begin(), ip.end());
    return frame;
  };
  const Bytes sll = tagged_frame(16, 14);
  const Bytes sll2 = tagged_frame(20, 0);
  for (const auto& [frame, link] : {std::pair(sll, LinkType::linux_sll), std::pair(sll2, LinkType::linux_sll2)}) {
    const L l = parse_all(frame, link);
    EXPECT_EQ(l.vlan_count, 2);
    EXPECT_EQ(l.vlan_tci, 0x2007) << "the outer tag";
    EXPECT_EQ(l.network, NetworkLayer::ipv4);
    EXPECT_EQ(l.network_offset, frame.size() - ip.size());
    EXPECT_TRUE(l.has(L::kTransportHeader));
    const auto length = static_cast<std::uint32_t>(frame.size());
    EXPECT_EQ(field_range(Field::link_header, l, link, length).length, l.network_offset) << "tags and all";
    EXPECT_EQ(field_range(Field::vlan_tags, l, link, length).length, 0U);
  }
  EXPECT_EQ(parse(sll.data(), 18, 52, LinkType::linux_sll).flags, L::kTruncated) << "cut in the first tag";
  EXPECT_EQ(parse(sll.data(), 18, 18, LinkType::linux_sll).flags, L::kMalformed);
}

/// The headers of an IPv6 packet whose jumbo payload option has `payload` as its length.
Bytes jumbogram(std::uint32_t payload) {
  Bytes bytes = packet().ipv6("::1", "::2").extension(ip_protocol::kHopByHop).udp(1, 2).bytes();
  bytes[4] = bytes[5] = 0;
  bytes[42] = 0xc2;
  bytes[43] = 4;
  for (unsigned i = 0; i < 4; ++i) bytes[44 + i] = static_cast<std::uint8_t>(payload >> (8 * (3 - i)));
  return bytes;
}

TEST(Parse, UsesTheJumboPayloadOption) {
  const auto parsed = [](const Bytes& bytes, std::uint32_t wire) {
    return parse(bytes.data(), static_cast<std::uint32_t>(bytes.size()), wire, LinkType::raw_ip);
  };
  const L cut = parsed(jumbogram(70000), 40 + 70000);
  EXPECT_EQ(cut.flags, L::kNetworkHeader | L::kTransportHeader | L::kPorts | L::kOptions | L::kTruncated);
  EXPECT_EQ(cut.transport, ip_protocol::kUdp);
  Bytes whole = jumbogram(70000);
  whole.resize(40 + 70000 + 6);
  const L padded = parsed(whole, 40 + 70000 + 6);
  EXPECT_EQ(padded.end, 40U + 70000U) << "not where the frame ends";
  EXPECT_EQ(padded.flags, L::kNetworkHeader | L::kTransportHeader | L::kPorts | L::kOptions);

  EXPECT_TRUE(parsed(jumbogram(70000), 40 + 69999).has(L::kMalformed)) << "beyond the wire";
  EXPECT_TRUE(parsed(jumbogram(0xffffffff), 100).has(L::kMalformed)) << "no sum wraps around";
  EXPECT_TRUE(parsed(jumbogram(65535), 70040).has(L::kMalformed)) << "RFC 2675 §3: a jumbogram is longer";
  for (const auto& [at, value] : {std::pair(42, 0x05), std::pair(43, 3), std::pair(6, 17)}) {
    Bytes other = jumbogram(70000);
    other[static_cast<std::size_t>(at)] = static_cast<std::uint8_t>(value);
    EXPECT_TRUE(parsed(other, 70040).has(L::kMalformed) || at == 6) << "no jumbo payload option at " << at;
    EXPECT_FALSE(parsed(other, 70040).has(L::kTransportHeader)) << at;
  }
  const Bytes option = jumbogram(70000);
  EXPECT_EQ(parse(option.data(), 45, 70040, LinkType::raw_ip).flags, L::kTruncated) << "cut in the option";
  EXPECT_TRUE(parse(option.data(), 45, 45, LinkType::raw_ip).has(L::kMalformed));
}

TEST(Parse, RecognisesTunnels) {
  const auto vxlan =
      packet().eth().ipv4("10.0.0.1", "10.0.0.2").udp(5000, 4789).raw({8, 0, 0, 0, 0, 0, 1, 0}).raw(Bytes(60));
  EXPECT_EQ(parse_all(vxlan.bytes()).tunnel, Tunnel::vxlan);
  EXPECT_EQ(parse_all(vxlan.bytes()).inner_offset, 14 + 20 + 8 + 8);
  const auto gre = packet()
                       .eth()
                       .ipv4("10.0.0.1", "10.0.0.2")
                       .protocol(ip_protocol::kGre)
                       .raw({0x20, 0, 8, 0, 0, 0, 0, 7})
                       .raw(Bytes(20));
  EXPECT_EQ(parse_all(gre.bytes()).tunnel, Tunnel::gre);
  EXPECT_EQ(parse_all(gre.bytes()).inner_offset, 14 + 20 + 8) << "behind the key";
  const auto ipip = packet().eth().ipv4("10.0.0.1", "10.0.0.2").protocol(ip_protocol::kIpv4).raw(Bytes(20));
  EXPECT_EQ(parse_all(ipip.bytes()).tunnel, Tunnel::ip_in_ip);
  const auto esp = packet().eth().ipv6("::1", "::2").protocol(ip_protocol::kEsp).raw(Bytes(24));
  EXPECT_EQ(parse_all(esp.bytes()).tunnel, Tunnel::esp);
}

TEST(Parse, RecognisesArpAndNonIpFrames) {
  const L arp = parse_all(packet().eth().ether_type(ether_type::kArp).raw(Bytes(28)).padded_to(60).bytes());
  EXPECT_EQ(arp.network, NetworkLayer::arp);
  EXPECT_TRUE(arp.has(L::kNetworkHeader));
  const L lldp = parse_all(packet().eth().ether_type(0x88cc).raw(Bytes(40)).bytes());
  EXPECT_EQ(lldp.network, NetworkLayer::other);
  EXPECT_EQ(parse_all({}).network, NetworkLayer::none);
}

/// Random bytes rarely give deeply nested packets, so this starts from a valid packet, and then damages and truncates
/// it.
Bytes damaged_packet() {
  auto builder = packet().eth();
  const int kind = *rc::gen::inRange(0, 7);
  if (*rc::gen::arbitrary<bool>()) builder.vlan(5);
  if (kind < 4) {
    builder.ipv4("10.0.0.1", "192.0.2.9", 64, Bytes(static_cast<std::size_t>(*rc::gen::inRange(0, 3)) * 4, 1));
  } else {
    builder.ipv6("2001:db8::1", "2001:db8::2");
    for (int n = *rc::gen::inRange(0, 3); n > 0; --n) {
      builder.extension(*rc::gen::element(ip_protocol::kHopByHop, ip_protocol::kRouting, ip_protocol::kAh), 2);
    }
  }
  switch (kind % 4) {
    case 0: builder.tcp(1, 2, TcpHeader::kSyn, Bytes(4, 1)); break;
    case 1: builder.udp(1, *rc::gen::element<std::uint16_t>(53, 4789)); break;
    case 2: builder.icmp(8); break;
    default: builder.sctp(1, 2); break;
  }
  Bytes bytes =
      builder.payload("some payload of an ordinary packet").padded_to(*rc::gen::inRange<std::size_t>(0, 160)).bytes();
  for (int n = *rc::gen::inRange(0, 4); n > 0; --n)
    bytes[*rc::gen::inRange<std::size_t>(12, bytes.size())] = *rc::gen::arbitrary<std::uint8_t>();
  return bytes;
}

RC_GTEST_PROP(Fields, PartitionEveryFrame, ()) {
  Bytes bytes = damaged_packet();
  const auto link = *rc::gen::element(LinkType::ethernet, LinkType::raw_ip, LinkType::null_host, LinkType::loop,
                                      LinkType::linux_sll, LinkType::linux_sll2, LinkType::ppp, LinkType::cisco_hdlc);
  // A cooked header replaces the Ethernet header except for its type, so that tags and IP follow it too.
  if (link == LinkType::linux_sll) bytes.insert(bytes.begin(), 2, 0);
  if (link == LinkType::linux_sll2) {
    bytes.insert(bytes.begin() + 14, 18, 0);
    bytes.erase(bytes.begin(), bytes.begin() + 12);
  }
  const auto wire = static_cast<std::uint32_t>(bytes.size());
  bytes.resize(*rc::gen::inRange<std::size_t>(0, bytes.size() + 1));
  const auto length = static_cast<std::uint32_t>(bytes.size());
  const std::vector<std::uint8_t> exact(bytes);  // a separate allocation, so that ASan detects reads beyond the end
  const L l = parse(exact.data(), length, wire, link);
  RC_ASSERT(l.network_offset <= l.transport_offset);
  RC_ASSERT(l.transport_offset <= l.payload_offset);
  RC_ASSERT(l.payload_offset <= l.end);
  RC_ASSERT(l.end <= length);
  std::vector<int> owners(length);
  for (unsigned f = 0; f < kFieldCount; ++f) {
    const FieldRange range = field_range(static_cast<Field>(f), l, link, length);
    RC_ASSERT(range.length <= length);
    if (f >= kByteFieldCount) RC_ASSERT(range.length == 0U);
    for (std::uint32_t i = 0; i < range.length; ++i) ++owners.at(range.offset + i);
  }
  RC_ASSERT(std::all_of(owners.begin(), owners.end(), [](int n) { return n == 1; }));
}

RC_GTEST_PROP(Parse, DependsOnlyOnParsedFields, ()) {
  Bytes bytes = damaged_packet();
  const L before = parse_all(bytes);
  RC_PRE(before.tunnel == Tunnel::none);
  for (unsigned f = 0; f < kByteFieldCount; ++f) {
    if (kParsedFields.has(static_cast<Field>(f))) continue;
    const FieldRange range =
        field_range(static_cast<Field>(f), before, LinkType::ethernet, static_cast<std::uint32_t>(bytes.size()));
    // `payload` includes the rest of an incomplete header after the last complete one.
    if (static_cast<Field>(f) == Field::payload && !before.has(L::kTransportHeader)) continue;
    for (std::uint32_t i = 0; i < range.length; ++i) bytes[range.offset + i] = *rc::gen::arbitrary<std::uint8_t>();
  }
  L after = parse_all(bytes);
  after.tunnel = before.tunnel;
  after.inner_offset = before.inner_offset;
  RC_ASSERT(after == before);
}

/// The flow hash of a frame of which `length` bytes were captured.
std::uint32_t hash_of(Bytes bytes, std::size_t length) {
  PacketDescriptor descriptor;
  descriptor.wire_length = static_cast<std::uint32_t>(bytes.size());
  descriptor.length = static_cast<std::uint32_t>(length);
  bytes.resize(length);
  bytes.shrink_to_fit();  // so that ASan detects reads beyond the end
  const PacketView view{bytes.data(), &descriptor};
  parse(view);
  return flow_hash(view);
}
std::uint32_t hash_of(const Bytes& bytes) { return hash_of(bytes, bytes.size()); }

TEST(FlowHash, IsTheSameInBothDirections) {
  EXPECT_EQ(hash_of(packet().eth().ipv4("10.0.0.1", "10.9.0.2").tcp(1000, 80).bytes()),
            hash_of(packet().eth().ipv4("10.9.0.2", "10.0.0.1").tcp(80, 1000).bytes()));
  EXPECT_EQ(hash_of(packet().eth().ipv6("2001:db8::1", "::7").udp(1000, 80).bytes()),
            hash_of(packet().eth().ipv6("::7", "2001:db8::1").udp(80, 1000).bytes()));
}

TEST(FlowHash, IsTheSameForAllFragments) {
  EXPECT_EQ(hash_of(packet().eth().ipv4("10.0.0.1", "10.0.0.2", 64, {}, 0x2000).udp(1, 2).bytes()),
            hash_of(packet().eth().ipv4("10.0.0.1", "10.0.0.2", 64, {}, 185).payload("rest").bytes()));
}

TEST(FlowHash, DoesNotDependOnTruncatedTcpOptions) {
  const Bytes options(20, 1);
  const auto ipv4 = [] { return packet().eth().ipv4("10.0.0.1", "10.0.0.2"); };
  const Bytes syn = ipv4().tcp(1000, 80, TcpHeader::kSyn, options).bytes();
  const Bytes ack = ipv4().tcp(1000, 80, TcpHeader::kAck).bytes();
  ASSERT_EQ(syn.size(), 74U);
  EXPECT_EQ(hash_of(syn, 68), hash_of(ack));
  EXPECT_NE(hash_of(syn, 68), hash_of(ipv4().tcp(1001, 80, TcpHeader::kAck).bytes())) << "the ports count";
}

RC_GTEST_PROP(FlowHash, IsTheSameForAFrameTruncatedAfterThePorts, ()) {
  const Bytes bytes = damaged_packet();
  const std::uint32_t whole = hash_of(bytes);
  for (std::size_t n = parse_all(bytes).transport_offset + std::size_t{4}; n < bytes.size(); ++n) {
    RC_ASSERT(hash_of(bytes, n) == whole);
  }
}

TEST(FlowHash, SpreadsFlowsOverWorkers) {
  std::vector<int> load(8);
  for (std::uint16_t port = 1024; port < 1024 + 8000; ++port) {
    ++load[hash_of(packet().eth().ipv4("10.0.0.1", "10.0.0.2").tcp(port, 443).bytes()) % load.size()];
  }
  const auto [least, most] = std::minmax_element(load.begin(), load.end());
  EXPECT_GT(*least, 850);
  EXPECT_LT(*most, 1150);
}

RC_GTEST_PROP(Checksum, UpdateEqualsRecomputation, (std::vector<std::uint8_t> bytes, std::uint16_t word)) {
  RC_PRE(bytes.size() >= 2U);
  const auto at = *rc::gen::inRange<std::size_t>(0, bytes.size() / 2) * 2;
  const std::uint16_t before = testing::slow_checksum(bytes, 0, bytes.size());
  RC_ASSERT(checksum(bytes.data(), static_cast<std::uint32_t>(bytes.size())) == before);
  const auto old = static_cast<std::uint16_t>(bytes[at] << 8 | bytes[at + 1]);
  bytes[at] = static_cast<std::uint8_t>(word >> 8);
  bytes[at + 1] = static_cast<std::uint8_t>(word);
  // All-zero data have the one's complement sum +0, which no update of a non-zero sum can give.
  RC_PRE(std::any_of(bytes.begin(), bytes.end(), [](std::uint8_t b) { return b != 0; }));
  RC_ASSERT(checksum_update(before, old, word) == testing::slow_checksum(bytes, 0, bytes.size()));
}

/// Whether `parse_plain` takes the frame. Checks that its layout is then that of `parse`, and otherwise unchanged.
bool is_plain(const testing::Frame& frame) {
  const auto length = static_cast<std::uint32_t>(frame.bytes.size());
  Bytes bytes = frame.bytes;
  bytes.shrink_to_fit();  // so that reads beyond the frame are detected
  PacketDescriptor descriptor;
  descriptor.length = length;
  descriptor.wire_length = frame.wire_length;
  descriptor.link_type = frame.link_type;
  const L before{.network_offset = 9, .end = 1, .flags = L::kMalformed, .vlan_count = 3, .tunnel = Tunnel::gre};
  descriptor.layout = before;
  const bool taken = parse_plain({bytes.data(), &descriptor});
  EXPECT_EQ(descriptor.layout, taken ? parse(frame.bytes.data(), length, frame.wire_length, frame.link_type) : before);
  return taken;
}

TEST(ParsePlain, TakesWholeSegmentsAndDatagrams) {
  const auto taken = [](const Bytes& bytes) {
    return is_plain({bytes, static_cast<std::uint32_t>(bytes.size()), LinkType::ethernet});
  };
  const auto ip = [] { return packet().eth().ipv4("10.0.0.1", "10.0.0.2"); };
  EXPECT_TRUE(taken(ip().tcp(1000, 80).payload("hello").padded_to(80).bytes()));
  EXPECT_TRUE(taken(ip().udp(1000, 53).payload("hello there").padded_to(60).bytes()));
  EXPECT_FALSE(taken(ip().udp(1000, 4789).payload("perhaps VXLAN").padded_to(80).bytes()));
  EXPECT_FALSE(taken(ip().sctp(1000, 80).padded_to(80).bytes()));
  EXPECT_FALSE(taken(packet().eth().vlan(7).ipv4("10.0.0.1", "10.0.0.2").tcp(1000, 80).padded_to(80).bytes()));
  EXPECT_FALSE(taken(packet().eth().ipv6("2001:db8::1", "2001:db8::2").tcp(1000, 80).bytes()));
}

TEST(ParsePlain, FindsWhatParseFinds) {
  testing::RandomFrames random(3);
  const Bytes tcp = packet().eth().ipv4("10.0.0.1", "10.0.0.2").tcp(1000, 80).payload("hello").bytes();
  const Bytes udp = packet().eth().ipv4("10.0.0.1", "10.0.0.2").udp(1000, 80).payload("hello there").bytes();
  ASSERT_LT(udp.size(), tcp.size());
  int plain = 0;
  for (int i = 0; i < 100'000; ++i) {
    is_plain(random.frame());
    // A plain one, with a few changes.
    testing::Frame frame{i % 2 == 0 ? tcp : udp, 0, LinkType::ethernet};
    frame.bytes.resize(frame.bytes.size() + random.below(8));
    for (std::uint32_t n = random.below(3); n > 0; --n)
      frame.bytes[random.below(udp.size())] = static_cast<std::uint8_t>(random.below(256));
    frame.wire_length = static_cast<std::uint32_t>(frame.bytes.size()) + random.below(3);
    if (random.below(4) == 0) frame.bytes.resize(random.below(frame.bytes.size()));
    plain += is_plain(frame) ? 1 : 0;
  }
  EXPECT_GT(plain, 20'000);
}

}  // namespace
}  // namespace penstock
