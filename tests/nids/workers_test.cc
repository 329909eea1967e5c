// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Rules that keep no state beyond a flow give the same alerts with any number of workers, for any traffic: fragments of
// every size in any order, tunnels whose two directions have different ports, labels in only one direction, ICMP errors
// about a flow.
//
//   connection ─▶ packets ─▶ tunnel? ─▶ fragments? ─▶ link header ─┐
//   connection ─▶ …                                                ├─▶ one capture ─▶ port ─▶ N workers ─▶ alerts
//   …                                                              ┘

#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "nids/scanner.h"
#include "packet/testing/fragments.h"
#include "packet/testing/packet_builder.h"
#include "port/testing/port_harness.h"

namespace penstock::nids::test {
namespace {

using penstock::testing::Bytes;
using penstock::testing::fragments_of;
using penstock::testing::packet;
using penstock::testing::PacketBuilder;
using port::testing::Captured;

constexpr std::string_view kRules =
    R"(alert tcp any any -> any any (flow:established,to_server; content:"attack at dawn"; sid:1;)
alert tcp any any -> any any (flow:established,to_client; content:"as you wish"; sid:2;)
alert udp any any -> any any (flow:established; content:"answer"; sid:3;)
alert udp any any -> any any (flow:to_server; content:"question"; flowbits:set,asked; sid:4;)
alert udp any any -> any any (content:"answer"; flowbits:isset,asked; sid:5;)
alert icmp any any -> any any (itype:3; flow:established; sid:6;)
alert tcp any any -> any any (flags:S; sid:7;)
alert ip any any -> any any (fragbits:M; sid:8;)
alert icmp any any -> any any (itype:0; flow:established; content:"ping"; sid:9;)
alert tcp any any -> any any (content:"three"; content:"four"; distance:0; sid:10;)
)";

void append(Bytes& to, const Bytes& more) { to.insert(to.end(), more.begin(), more.end()); }
Bytes be16(std::initializer_list<unsigned> words) {
  Bytes bytes;
  for (const unsigned word : words) {
    bytes.push_back(static_cast<std::uint8_t>(word >> 8));
    bytes.push_back(static_cast<std::uint8_t>(word));
  }
  return bytes;
}

class Traffic {
 public:
  explicit Traffic(std::uint32_t seed) : random_(seed) {}

  /// Frames of many connections; those of each are in order, except fragments.
  std::vector<Bytes> frames(int connections) {
    std::vector<std::vector<Bytes>> all;
    for (int i = 0; i < connections; ++i) all.push_back(connection());
    std::vector<Bytes> mixed;
    std::vector<std::size_t> at(all.size());
    for (std::size_t left = all.size(); left > 0;) {
      const std::size_t i = below(all.size());
      if (at[i] == all[i].size()) continue;
      mixed.push_back(all[i][at[i]++]);
      if (at[i] == all[i].size()) --left;
    }
    return mixed;
  }

 private:
  enum class Tunnel { none, ip_in_ip, gre, vxlan, geneve };
  struct Hosts {
    std::string client, server;
    bool v6 = false;
  };

  std::size_t below(std::size_t n) { return random_() % n; }
  bool one_in(std::size_t n) { return below(n) == 0; }

  Hosts hosts() {
    const std::string number = std::to_string(1 + below(6)), other = std::to_string(1 + below(6));
    if (one_in(3)) return {"fd00::1:" + number, "fd00::2:" + other, true};
    return {"10.0.1." + number, "10.0.2." + other, false};
  }
  /// A packet without a link header.
  static PacketBuilder ip(const Hosts& hosts, bool to_server) {
    const std::string &from = to_server ? hosts.client : hosts.server, &to = to_server ? hosts.server : hosts.client;
    return hosts.v6 ? packet().ipv6(from, to) : packet().ipv4(from, to);
  }

  struct Way {
    Tunnel tunnel;
    Hosts ends;              // of the tunnel
    std::uint16_t ports[2];  // of its packets in each direction
    int link[2];             // encapsulation of frames in each direction
    bool fragments, outer_fragments;
  };
  Way way() {
    Way way;
    way.tunnel = one_in(3) ? static_cast<Tunnel>(1 + below(4)) : Tunnel::none;
    way.ends = hosts();
    for (auto& port : way.ports) port = static_cast<std::uint16_t>(49152 + below(10000));
    for (auto& link : way.link) link = one_in(3) ? static_cast<int>(below(4)) : 0;
    way.fragments = one_in(2);
    way.outer_fragments = one_in(2);
    return way;
  }

  /// The frames of one packet, some of which may come late.
  std::vector<Bytes> sent(const Way& way, const Bytes& ip_packet, bool to_server) {
    std::vector<Bytes> packets = way.fragments ? fragmented(ip_packet) : std::vector<Bytes>{ip_packet};
    std::vector<Bytes> frames;
    for (const Bytes& one : packets) {
      const Bytes outer = way.tunnel == Tunnel::none ? one : tunnelled(way, one, to_server);
      const bool cut = way.tunnel != Tunnel::none && way.outer_fragments;
      for (const Bytes& part : cut ? fragmented(outer) : std::vector<Bytes>{outer}) {
        frames.push_back(linked(part, way.link[to_server ? 0 : 1]));
      }
    }
    std::ranges::shuffle(frames, random_);
    return frames;
  }
  std::vector<Bytes> fragmented(const Bytes& packet) {
    const bool v6 = packet[0] >> 4 == 6;
    const std::size_t payload = packet.size() - (v6 ? 40 : 20);
    std::vector<std::size_t> cuts;
    const std::size_t step = 8 * (1 + below(5));
    for (std::size_t at = step; at < payload; at += step) cuts.push_back(at);
    if (cuts.empty() || one_in(4)) return {packet};
    return fragments_of(packet, cuts, ++id_, 0);
  }
  static Bytes tunnelled(const Way& way, const Bytes& inner, bool to_server) {
    const std::uint16_t port = way.ports[to_server ? 0 : 1];
    const unsigned type = inner[0] >> 4 == 6 ? ether_type::kIpv6 : ether_type::kIpv4;
    PacketBuilder outer = ip(way.ends, to_server);
    const Bytes macs(12, 2);
    switch (way.tunnel) {
      case Tunnel::none: break;
      case Tunnel::ip_in_ip: return outer.protocol(inner[0] >> 4 == 6 ? 41 : 4).raw(inner).bytes();
      case Tunnel::gre: return outer.protocol(47).raw(be16({0, type})).raw(inner).bytes();
      case Tunnel::vxlan:
        return outer.udp(port, 4789).raw(be16({0x0800, 0, 0, 0x700})).raw(macs).raw(be16({type})).raw(inner).bytes();
      case Tunnel::geneve:
        return outer.udp(port, 6081).raw(be16({0, 0x6558, 0, 0x700})).raw(macs).raw(be16({type})).raw(inner).bytes();
    }
    return inner;
  }
  static Bytes linked(const Bytes& packet, int link) {
    const unsigned type = packet[0] >> 4 == 6 ? ether_type::kIpv6 : ether_type::kIpv4;
    Bytes frame(12, 4);
    switch (link) {
      case 1: append(frame, be16({0x8847, 0x0001, 0x5140})); break;  // an MPLS label
      case 2:
        append(frame, be16({0x8864, 0x1100, 1, static_cast<unsigned>(packet.size() + 2),
                            type == ether_type::kIpv6 ? 0x57U : 0x21U}));
        break;
      case 3: append(frame, be16({static_cast<unsigned>(packet.size() + 8) & 0x5ff, 0xaaaa, 0x0300, 0, type})); break;
      default: append(frame, be16({type})); break;
    }
    append(frame, packet);
    return frame;
  }

  std::vector<Bytes> connection() {
    switch (below(3)) {
      case 0: return tcp();
      case 1: return udp();
      default: return ping();
    }
  }

  /// Without ports, all pings between two hosts are one flow, and so in one tunnel.
  std::vector<Bytes> ping() {
    const Way way = this->way();
    const Hosts hosts = way.tunnel == Tunnel::none ? this->hosts() : way.ends;
    std::vector<Bytes> frames;
    for (int i = 0; i < 2; ++i) {
      for (const bool there : {true, false}) {
        const std::uint8_t type = hosts.v6 ? (there ? 128 : 129) : (there ? 8 : 0);
        add(frames, sent(way, ip(hosts, there).icmp(type).payload("a ping of some length, to be cut").bytes(), there));
      }
    }
    return frames;
  }

  std::vector<Bytes> udp() {
    const Hosts hosts = this->hosts();
    const Way way = this->way();
    const auto port = static_cast<std::uint16_t>(++port_);
    std::vector<Bytes> frames;
    for (int i = 0; i < 3; ++i) {
      const Bytes question = ip(hosts, true).udp(port, 53).payload("a question of some length").bytes();
      add(frames, sent(way, question, true));
      add(frames, sent(way, ip(hosts, false).udp(53, port).payload("and the answer, longer than that").bytes(), false));
      if (!hosts.v6 && one_in(3)) add(frames, sent(way, unreachable(hosts, question), false));
    }
    return frames;
  }
  /// Sent by a router on the way, or by the server itself.
  Bytes unreachable(const Hosts& hosts, const Bytes& quoted) {
    const bool far = one_in(2);
    const Bytes head(quoted.begin(), quoted.begin() + 28);
    return packet().ipv4(far ? hosts.server : "198.51.100.1", hosts.client).icmp(3, 1).raw(head).bytes();
  }

  std::vector<Bytes> tcp() {
    const Hosts hosts = this->hosts();
    const Way way = this->way();
    const auto port = static_cast<std::uint16_t>(++port_);
    std::uint32_t next[2] = {1000, 5000};
    std::vector<Bytes> frames;
    Bytes last;
    const auto segment = [&](bool there, std::uint8_t flags, std::string_view text) {
      Bytes bytes = ip(hosts, there).tcp(there ? port : 80, there ? 80 : port, flags).payload(text).bytes();
      const std::size_t at = hosts.v6 ? 40 : 20;
      const std::uint32_t ack = (flags & TcpHeader::kAck) != 0 ? next[there ? 1 : 0] : 0;
      for (std::size_t i = 0; i < 4; ++i) {
        bytes[at + 4 + i] = static_cast<std::uint8_t>(next[there ? 0 : 1] >> (24 - 8 * i));
        bytes[at + 8 + i] = static_cast<std::uint8_t>(ack >> (24 - 8 * i));
      }
      next[there ? 0 : 1] += static_cast<std::uint32_t>(text.size()) + ((flags & 3) != 0 ? 1 : 0);
      last = bytes;
      add(frames, sent(way, bytes, there));
    };
    constexpr std::uint8_t kAck = TcpHeader::kAck;
    segment(true, TcpHeader::kSyn, {});
    segment(false, TcpHeader::kSyn | kAck, {});
    segment(true, kAck, {});
    for (const auto& [there, text] :
         std::initializer_list<std::pair<bool, std::string_view>>{{true, "we attack"},
                                                                  {true, " at dawn, by three, or by"},
                                                                  {false, "as you wish"},
                                                                  {true, "four o'clock"}}) {
      segment(there, kAck | TcpHeader::kPsh, text);
      if (!hosts.v6 && there && one_in(4)) add(frames, sent(way, unreachable(hosts, last), false));
      segment(!there, kAck, {});
    }
    segment(true, kAck | TcpHeader::kFin, {});
    segment(false, kAck | TcpHeader::kFin, {});
    segment(true, kAck, {});
    return frames;
  }
  static void add(std::vector<Bytes>& to, std::vector<Bytes> more) {
    for (Bytes& frame : more) to.push_back(std::move(frame));
  }

  std::mt19937 random_;
  std::uint32_t id_ = 0, port_ = 1024;
};

/// Alerts by rule and packet, sorted, without times.
using Alerts = std::vector<std::string>;

class AlertBag final : public AlertSink {
 public:
  void alert(const Alert& alert) noexcept override {
    const stack::DecodedPacket& packet = alert.packet->packet;
    const auto text = [&](const stack::Endpoint& end) {
      const std::string address = packet.ip_version == 4
                                      ? to_string(Ipv4Address{static_cast<std::uint32_t>(end.address.low)})
                                      : to_string(end.address);
      return address + '.' + std::to_string(end.port);
    };
    seen.push_back(std::to_string(alert.rule->sid) + ": " + text(packet.source) + " > " + text(packet.destination) +
                   (alert.in_stream ? " in the stream" : "") + (packet.tunnel_depth > 0 ? " in a tunnel" : ""));
  }
  Alerts seen;
};

Alerts alerts_of(const std::string& capture, const std::string& kind, unsigned workers, const Detection& detection,
                 port::FragmentCounts* counts) {
  auto port = port::testing::must_make(kind, {{"read", {capture}}});
  EXPECT_TRUE(port->open(workers));
  AlertBag alerts;
  HostMemory hosts(1 << 20);
  for (const std::vector<Captured>& frames : port::testing::drain(*port, workers)) {
    stack::TrackerOptions options;
    options.seam_bytes = detection.seam_bytes();
    stack::Tracker tracker(options);
    Inspector inspector(detection, hosts, alerts, {});
    std::uint64_t number = 0;
    for (const Captured& frame : frames) {
      PacketDescriptor descriptor;
      descriptor.timestamp_ns = frame.timestamp_ns;
      descriptor.length = descriptor.wire_length = static_cast<std::uint32_t>(frame.bytes.size());
      Bytes bytes = frame.bytes;
      inspector.begin_frame();
      tracker.track({bytes.data(), &descriptor}, ++number, inspector);
    }
    inspector.begin_frame();
    tracker.finish(inspector);
  }
  if (counts != nullptr) *counts = port->fragments().value_or(port::FragmentCounts{});
  EXPECT_TRUE(port->close().empty());
  std::ranges::sort(alerts.seen);
  return alerts.seen;
}

/// Those in `a` that are not in `b`.
std::string lacking(const Alerts& a, const Alerts& b) {
  Alerts missing;
  std::ranges::set_difference(a, b, std::back_inserter(missing));
  std::string text;
  for (const std::string& one : missing) text += one + '\n';
  return text;
}

TEST(Workers, AnyNumberGivesTheSameAlerts) {
  const auto detection = compiled(rules_of(kRules));
  const port::testing::TemporaryFolder folder;
  for (const std::uint32_t seed : {1U, 2U, 3U, 4U}) {
    std::vector<Captured> packets;
    std::uint64_t now = 1'700'000'000'000'000'000;
    for (Bytes& frame : Traffic(seed).frames(300)) {
      const auto length = static_cast<std::uint32_t>(frame.size());
      packets.push_back({now += 100'000, length, LinkType::ethernet, std::move(frame)});
    }
    port::testing::write_capture(folder / "traffic.pcap", packets);
    const auto want = alerts_of(folder / "traffic.pcap", "pcap", 1, *detection, nullptr);
    for (int sid = 1; sid <= 10; ++sid) {
      const std::string begin = std::to_string(sid) + ':';
      EXPECT_GT(std::ranges::count_if(want, [&](const std::string& one) { return one.starts_with(begin); }), 5) << sid;
    }
    const auto same = [&](const Alerts& got, const std::string& by) {
      EXPECT_EQ(lacking(want, got), "") << "are missing with " << by;
      EXPECT_EQ(lacking(got, want), "") << "are too many with " << by;
    };
    for (const unsigned workers : {2U, 3U, 4U, 8U}) {
      port::FragmentCounts counts;
      same(alerts_of(folder / "traffic.pcap", "pcap", workers, *detection, &counts),
           std::to_string(workers) + " workers");
      EXPECT_GT(counts.packets, 1000U);
      EXPECT_GT(counts.waited, 300U);
      EXPECT_EQ(counts.not_followed, 0U);
      EXPECT_EQ(counts.ambiguous, 0U);
    }
    same(alerts_of(folder / "traffic.pcap", "memory", 4, *detection, nullptr), "the port memory");
  }
}

}  // namespace
}  // namespace penstock::nids::test
