// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// NAT, compared with the kernel's: the same packets with the same rules must leave byte for byte alike, and both must
// remember the same connections. Where the kernel takes a port at random, ours takes the same one, if it may. Needs
// root and nft. PENSTOCK_CONNTRACK_ROUNDS multiplies the number of conversations, PENSTOCK_CONNTRACK_SEED is their
// seed.

#include <netinet/in.h>
#include <sys/socket.h>

#include <array>
#include <optional>
#include <vector>

#include "conntrack/testing/nat_comparison.h"
#include "conntrack/testing/nat_traffic.h"
#include "conntrack/testing/sctp_packet.h"

namespace penstock::conntrack {
namespace {

std::vector<NatRuleSet> rule_sets() {
  constexpr auto kRandom = NatRange::kRandom, kFully = NatRange::kFullyRandom, kPersistent = NatRange::kPersistent,
                 kNetmap = NatRange::kNetmap;
  const auto snat = [](unsigned last, std::uint16_t first_port = 0, std::uint16_t last_port = 0,
                       std::uint8_t flags = 0) {
    return NatStatement{"snat",
                        {"198.51.100.1", "2001:db8:1::1"},
                        {fmt::format("198.51.100.{}", last), fmt::format("2001:db8:1::{}", last)},
                        first_port,
                        last_port,
                        flags};
  };
  const auto dnat = [](unsigned last, std::uint16_t first_port = 0, std::uint16_t last_port = 0,
                       std::uint8_t flags = 0) {
    return NatStatement{"dnat",
                        {"10.1.0.1", "2001:db8::1"},
                        {fmt::format("10.1.0.{}", last), fmt::format("2001:db8::{}", last)},
                        first_port,
                        last_port,
                        flags};
  };
  const auto masquerade = [](std::uint16_t first_port = 0, std::uint16_t last_port = 0, std::uint8_t flags = 0) {
    return NatStatement{"masquerade", {}, {}, first_port, last_port, flags};
  };
  const NatStatement none;
  return {
      {"source", none, snat(1)},
      {"source, several addresses", none, snat(4)},
      {"source, several addresses, persistent", none, snat(4, 0, 0, kPersistent)},
      {"source, few ports", none, snat(1, 2000, 2003), false},
      {"source, ports", none, snat(2, 30000, 39999), false},
      {"source, one port", none, snat(3, 2000, 2000)},
      {"source, random", none, snat(1, 0, 0, kRandom)},
      {"source, fully random", none, snat(3, 0, 0, kFully | kPersistent)},
      {"masquerade", none, masquerade()},
      {"masquerade, ports", none, masquerade(3000, 3500, kFully), false},
      {"destination", dnat(1), none},
      {"destination, several addresses", dnat(3), none},
      {"destination, ports", dnat(1, 8080, 8082), none},
      {"destination, random ports", dnat(2, 8000, 8100, kRandom), none},
      {"both", dnat(3, 8080, 8080), snat(3)},
      {"both, masquerade", dnat(1), masquerade()},
      {"networks",
       {"dnat", {"10.1.0.0/24", "2001:db8::/64"}, {}, 0, 0, kNetmap},
       {"snat", {"198.51.0.0/16", "2001:db8:1::/64"}, {}, 0, 0, kNetmap}},
      {"no rules", none, none},
  };
}

NatStatement to_one_address(std::uint16_t first_port = 0, std::uint16_t last_port = 0) {
  return {"snat", {"198.51.100.1", "2001:db8:1::1"}, {"198.51.100.1", "2001:db8:1::1"}, first_port, last_port};
}

class NatOracle : public KernelTest<NatKernel> {
 protected:
  static inline const std::uint64_t seed = from_environment("PENSTOCK_CONNTRACK_SEED", 20262);
};

TEST_F(NatOracle, TranslatesAlike) {
  Random random(seed);
  constexpr std::size_t kPackets = 300;
  std::array<std::size_t, 4> all{};
  std::size_t sent = 0;
  for (std::uint64_t round = 0; round < 2 * rounds; ++round) {
    for (const NatRuleSet& rules : rule_sets()) {
      NatComparison comparison(*kernel, rules);
      Traffic traffic(random, rules.may_close);
      for (std::size_t i = 0; i < kPackets; ++i, ++sent) {
        const auto [side, packet] = traffic.next();
        const auto output = comparison.send(side, packet);
        if (!comparison.same()) FAIL() << "seed " << seed << ", round " << round << ", packet " << i;
        if (output) traffic.add(side, packet, *output);
      }
      for (std::size_t i = 0; i < all.size(); ++i) all[i] += comparison.counts()[i];
    }
  }
  fmt::print("{} packets: {} translated, {} errors translated, {} dropped; {} connections with a random port\n", sent,
             all[0], all[1], all[2], all[3]);
  EXPECT_GT(all[0], sent / 4);
  EXPECT_GT(all[1], sent / 50);
  EXPECT_GT(all[2], 0);
  EXPECT_GT(all[3], 0);
}

/// Whose packet this is, and its ports.
Ends ends_of(const Packet& packet) {
  ParsedPacket parsed(packet);
  const Ipv4Header& ip = parsed.view().ipv4();
  return {to_string(Ipv4Address{ip.source.value()}), to_string(Ipv4Address{ip.destination.value()}),
          parsed.view().udp().source_port.value(), parsed.view().udp().destination_port.value()};
}

TEST_F(NatOracle, EndedConnectionsGiveTheirPortsToLaterOnesAlike) {
  const NatRuleSet rules{"two ports", {}, to_one_address(2000, 2001)};
  NatComparison comparison(*kernel, rules);
  const auto client = [](std::uint16_t port, TcpFields fields) {
    return tcp_packet({.source_port = port, .destination_port = 80}, fields);
  };
  std::optional<NatKernel::Output> output;
  for (const std::uint16_t port : std::to_array<std::uint16_t>({1001, 1002})) {
    output = comparison.send(Side::inside, client(port, {.flags = TcpHeader::kSyn, .sequence = 1000}));
    ASSERT_TRUE(output);
    const Ends server = ends_of(output->packet).reversed();
    const auto answer = [&](TcpFields fields) { return comparison.send(Side::outside, tcp_packet(server, fields)); };
    EXPECT_TRUE(answer({.flags = TcpHeader::kSyn | TcpHeader::kAck, .sequence = 500, .ack = 1001}));
    EXPECT_TRUE(comparison.send(Side::inside, client(port, {.sequence = 1001, .ack = 501})));
    if (port == 1001) {
      EXPECT_TRUE(answer({.flags = TcpHeader::kRst, .sequence = 501}));
    }
  }
  EXPECT_FALSE(comparison.send(Side::inside, client(1003, {.flags = TcpHeader::kSyn, .sequence = 900})));
  EXPECT_TRUE(comparison.send(Side::inside, client(1003, {.flags = TcpHeader::kSyn, .sequence = 5000})));
  EXPECT_FALSE(comparison.send(Side::inside, client(1004, {.flags = TcpHeader::kSyn, .sequence = 9000})));
  EXPECT_TRUE(comparison.same());
}

TEST_F(NatOracle, TranslatesSctpAlike) {
  const NatRuleSet rules{"SCTP", {}, to_one_address()};
  NatComparison comparison(*kernel, rules);
  const Packet init{1, 0, 0, 20, 0, 0, 0, 9, 0, 1, 0, 0, 0, 1, 0, 1, 0, 0, 0, 3};
  Packet acknowledgment = init;
  acknowledgment[0] = 2;
  for (const char* const host : {"10.1.0.1", "10.1.0.2", "10.1.0.3"}) {
    const auto output = comparison.send(Side::inside, sctp_packet({.source = host}, init));
    ASSERT_TRUE(output) << host;
    EXPECT_TRUE(comparison.send(Side::outside, sctp_packet(ends_of(output->packet).reversed(), acknowledgment, 9)));
  }
  EXPECT_TRUE(comparison.same());
  EXPECT_EQ(comparison.counts()[0], 6);
}

TEST_F(NatOracle, RedirectsAlike) {
  const NatRuleSet rules{"redirect", {"redirect", {}, {}, 7007, 7007}, {}};
  ASSERT_TRUE(kernel->use(rules, true));
  const int server = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(7007);
  ASSERT_EQ(bind(server, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  const Ends client{"10.1.0.1", "198.51.100.9", 4000, 53}, local{"10.1.0.1", kRouterInside[0], 4000, 7007};
  TranslatingTable nat;
  const Packet query = udp_packet(client);
  const auto range = rules.destination.range(nat.drop(query).connection->original);
  EXPECT_EQ(nat.forward(query, {.destination = range}), udp_packet(local));
  EXPECT_FALSE(kernel->forward(Side::inside, query, 3)) << "it is for the router";
  std::array<char, 64> received{};
  sockaddr_in sender{};
  socklen_t length = sizeof sender;
  ASSERT_EQ(recvfrom(server, received.data(), received.size(), 0, reinterpret_cast<sockaddr*>(&sender), &length), 4);
  EXPECT_EQ(ntohs(sender.sin_port), 4000);
  ASSERT_EQ(sendto(server, "uuuuuu", 6, 0, reinterpret_cast<const sockaddr*>(&sender), length), 6);
  close(server);
  const auto answer = kernel->next(300);
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->side, Side::inside);
  // What the kernel's own stack has chosen.
  Packet ours = udp_packet(local.reversed(), 6);
  std::copy(answer->packet.begin() + 4, answer->packet.begin() + 9, ours.begin() + 4);
  put_be16(ours, 10, 0);
  put_be16(ours, 10, testing::slow_checksum(ours, 0, 20));
  EXPECT_EQ(nat.forward(ours), answer->packet);
  const auto theirs = kernel->find(nat.last.connection->original);
  ASSERT_TRUE(theirs);
  EXPECT_EQ(theirs->tuples[1], nat.last.connection->reply);
  EXPECT_EQ(theirs->status, nat.last.connection->status);
}

TEST_F(NatOracle, FragmentsLeaveAlike) {
  const NatRuleSet rules{"fragments", {}, to_one_address(3000, 3000)};
  ASSERT_TRUE(kernel->use(rules));
  const Packet datagram = udp_packet({}, 100);
  TranslatingTable nat;
  const std::array<Packet, 2> sent{fragment_of(datagram, 0, 48, true), fragment_of(datagram, 48, 108, false)};
  EXPECT_FALSE(kernel->forward(Side::inside, sent[0], 3)) << "until it has all";
  auto theirs = kernel->forward(Side::inside, sent[1], 300);
  for (const Packet& packet : sent) {
    const Tuple original{address_of("10.1.0.1"), address_of("10.2.0.1"), 1000, 80, ip_protocol::kUdp, 4};
    std::optional<Packet> ours = nat.forward(packet, {.source = rules.source.range(original)});
    ASSERT_TRUE(ours && theirs);
    count_hop(*ours);
    EXPECT_EQ(*ours, theirs->packet);
    theirs = kernel->next(30);
  }
}

}  // namespace
}  // namespace penstock::conntrack
