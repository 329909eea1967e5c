// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Our parser's results, given to libpcap as filter expressions that must match the packet: link types, tags, protocols,
// fragments, positions of headers and payload. libpcap uses its own parser.

#include <gtest/gtest.h>
#include <pcap/pcap.h>

#include <map>
#include <memory>
#include <string>
#include <utility>

#include "property/access_check.h"
#include "property/corpus_packets.h"
#include "property/random_packets.h"

namespace penstock::property {
namespace {

int data_link_type(LinkType link) {
  switch (link) {
    case LinkType::ethernet: return DLT_EN10MB;
    case LinkType::raw_ip: return DLT_RAW;
    case LinkType::null_host: return DLT_NULL;
    case LinkType::loop: return DLT_LOOP;
    case LinkType::linux_sll: return DLT_LINUX_SLL;
    case LinkType::linux_sll2: return DLT_LINUX_SLL2;
    case LinkType::ppp: return DLT_PPP;
    case LinkType::cisco_hdlc: return DLT_C_HDLC;
  }
  return -1;
}

class Filters {
 public:
  Filters() = default;
  Filters(const Filters&) = delete;
  Filters& operator=(const Filters&) = delete;
  ~Filters() {
    for (auto& [key, program] : programs_) pcap_freecode(&program);
  }

  bool match(const std::string& expression, const Packet& packet) {
    const int link = data_link_type(packet.descriptor.link_type);
    const auto [at, is_new] = programs_.try_emplace({link, expression});
    if (is_new) {
      const std::unique_ptr<pcap_t, decltype(&pcap_close)> dead(pcap_open_dead(link, 262144), &pcap_close);
      if (pcap_compile(dead.get(), &at->second, expression.c_str(), 1, PCAP_NETMASK_UNKNOWN) != 0) {
        ADD_FAILURE() << expression << ": " << pcap_geterr(dead.get());
      }
    }
    pcap_pkthdr header{};
    header.caplen = packet.descriptor.length;
    header.len = packet.descriptor.wire_length;
    return pcap_offline_filter(&at->second, &header, packet.bytes.data()) != 0;
  }

 private:
  std::map<std::pair<int, std::string>, bpf_program> programs_;
};

class ParseOracle : public ::testing::Test {
 protected:
  /// Expects that libpcap's result for `what` is `holds`, after as many VLAN tags as we have found.
  void expect(Packet& packet, const std::string& what, bool holds) {
    std::string expression;
    for (unsigned i = 0; i < packet.descriptor.layout.vlan_count; ++i) expression += "vlan and ";
    expression += what;
    ++queries_[holds];
    ASSERT_EQ(filters_.match(expression, packet), holds) << expression << ": " << described(packet);
  }

  static bool libpcap_knows(const Packet& packet) {
    const PacketLayout& layout = packet.descriptor.layout;
    // It accepts a link header with its end missing.
    if (layout.network == NetworkLayer::none && layout.flags != 0) return false;
    switch (packet.descriptor.link_type) {
      // Our parser treats nine tags as malformed. Both accept the same EtherTypes for tags.
      case LinkType::ethernet: return layout.vlan_count < 8;
      // It accepts address families only by the host's own numbers and byte order; we also accept other systems'.
      case LinkType::null_host: return packet.bytes.size() >= 4 && (packet.bytes[0] == 2 || packet.bytes[0] == 10);
      case LinkType::loop: return packet.bytes.size() >= 4 && (packet.bytes[3] == 2 || packet.bytes[3] == 10);
      // It requires the address and control bytes, which are optional.
      case LinkType::ppp:
        return packet.bytes.size() >= 4 && packet.bytes[0] == 0xff && packet.bytes[1] == 3 && packet.bytes[2] == 0;
      default: return true;
    }
  }

  void compare(Packet& packet) {
    const PacketLayout& layout = packet.descriptor.layout;
    if (!libpcap_knows(packet)) return;
    const bool ipv4 = layout.network == NetworkLayer::ipv4;
    const bool ipv6 = layout.network == NetworkLayer::ipv6;
    expect(packet, "ip", ipv4);
    expect(packet, "ip6", ipv6);
    if (packet.descriptor.link_type == LinkType::ethernet) {
      expect(packet, "arp", layout.network == NetworkLayer::arp);
      if (layout.vlan_count > 0) {
        // With outer tags consumed, this refers to the innermost tag; ours is the outermost.
        ASSERT_TRUE(filters_.match("vlan " + std::to_string(layout.vlan_tci & 0xfff), packet)) << described(packet);
      }
      // There are no more tags than we found.
      if (!layout.has(PacketLayout::kTruncated) && !layout.has(PacketLayout::kMalformed)) {
        expect(packet, "vlan", false);
      }
    }
    if (ipv4 && layout.has(PacketLayout::kNetworkHeader)) compare_ipv4(packet);
    if (ipv6 && layout.has(PacketLayout::kNetworkHeader)) compare_ipv6(packet);
    ++packets_;
  }

  void compare_ipv4(Packet& packet) {
    const PacketLayout& layout = packet.descriptor.layout;
    const std::uint32_t header = layout.transport_offset - layout.network_offset;
    expect(packet, "(ip[0] & 15) * 4 = " + std::to_string(header), true);
    expect(packet, "ip[9] = " + std::to_string(layout.transport), true);
    expect(packet, "(ip[6:2] & 0x3fff) != 0", layout.has(PacketLayout::kFragment));
    expect(packet, "(ip[6:2] & 0x1fff) != 0", layout.has(PacketLayout::kLaterFragment));
    expect(packet, "(ip[0] & 15) > 5", layout.has(PacketLayout::kOptions));
    if (!layout.has(PacketLayout::kTruncated)) {
      expect(packet, "ip[2:2] = " + std::to_string(layout.end - layout.network_offset), true);
    }
    compare_transport(packet, "");
    // If libpcap finds a header that we do not, it is incomplete.
    if (!layout.has(PacketLayout::kTransportHeader) && !layout.has(PacketLayout::kMalformedTransport) &&
        !layout.has(PacketLayout::kTruncated) && !layout.has(PacketLayout::kLaterFragment)) {
      expect(packet, "(tcp or udp or sctp or icmp)", false);
    }
  }

  void compare_ipv6(Packet& packet) {
    const PacketLayout& layout = packet.descriptor.layout;
    constexpr unsigned kUnclear = PacketLayout::kMalformed | PacketLayout::kTruncated | PacketLayout::kFragment;
    if ((layout.flags & kUnclear) != 0) return;
    if (!layout.has(PacketLayout::kOptions)) {
      expect(packet, "ip6[6] = " + std::to_string(layout.transport), true);
      if (layout.transport != ip_protocol::kHopByHop) {
        expect(packet, "ip6[4:2] = " + std::to_string(layout.end - layout.network_offset - 40), true);
      }
      return compare_transport(packet, "ip6 and ");
    }
    // After protochain, filters cannot read beyond the headers that it skips, nor be combined with tags.
    if (layout.vlan_count > 0 || packet.descriptor.link_type != LinkType::ethernet) return;
    // It continues after an authentication header as if that began the packet.
    if (filters_.match("ip6 protochain 51", packet)) return;
    for (const unsigned protocol : {6U, 17U, 58U, 132U, 50U, 47U}) {
      expect(packet, "ip6 protochain " + std::to_string(protocol), layout.transport == protocol);
    }
  }

  void compare_transport(Packet& packet, const std::string& family) {
    const PacketLayout& layout = packet.descriptor.layout;
    if (!layout.has(PacketLayout::kTransportHeader)) return;
    const bool v6 = !family.empty();
    const auto byte_at = [&](std::uint32_t at) { return std::to_string(packet.bytes[at]); };
    if (packet.view().has_ports() && layout.transport != ip_protocol::kUdpLite) {
      expect(packet,
             fmt::format("{}src port {} and dst port {}", family, packet.view().udp().source_port.value(),
                         packet.view().udp().destination_port.value()),
             true);
    }
    const bool payload = layout.payload_offset < layout.end;
    const std::uint32_t l4 = layout.transport_offset;
    if (layout.transport == ip_protocol::kTcp) {
      expect(packet, family + "tcp", true);
      if (v6) return;  // tcp[…] works only for IPv4
      expect(packet, "tcp[13] = " + byte_at(l4 + 13), true);
      expect(packet, "(tcp[12] & 0xf0) >> 2 = " + std::to_string(layout.payload_offset - l4), true);
      if (payload) expect(packet, "tcp[(tcp[12] & 0xf0) >> 2] = " + byte_at(layout.payload_offset), true);
    } else if (layout.transport == ip_protocol::kUdp) {
      expect(packet, family + "udp", true);
      if (!v6 && payload) expect(packet, "udp[8] = " + byte_at(layout.payload_offset), true);
      if (!v6 && layout.end > layout.payload_offset + 8U) {
        expect(packet, "udp dst port 4789 and (udp[8] & 8) != 0", layout.tunnel == Tunnel::vxlan);
      }
    } else if (layout.transport == ip_protocol::kSctp) {
      expect(packet, family + "sctp", true);
    } else if (layout.transport == ip_protocol::kIcmp) {
      expect(packet, "icmp", true);
      expect(packet, "icmp[0] = " + byte_at(l4), true);
    }
  }

  Filters filters_;
  std::map<bool, std::size_t> queries_;
  std::size_t packets_ = 0;
};

TEST_F(ParseOracle, AgreesOnRandomAndDamagedPackets) {
  RandomPackets random(12);
  for (int i = 0; i < 20'000 && !HasFatalFailure(); ++i) {
    Packet packet = random.next();
    compare(packet);
  }
  EXPECT_GT(packets_, 15'000U);
  EXPECT_GT(queries_[true], 50'000U);
  EXPECT_GT(queries_[false], 50'000U);
}

TEST_F(ParseOracle, AgreesOnRealPackets) {
  auto corpus = corpus_packets(30);
  if (corpus.empty()) GTEST_SKIP() << "no corpus: set PENSTOCK_CORPUS";
  for (Packet& packet : corpus) {
    compare(packet);
    if (HasFatalFailure()) break;
  }
  EXPECT_GT(packets_, 5'000U);
}

}  // namespace
}  // namespace penstock::property
