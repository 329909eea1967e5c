// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// NAT, compared with the kernel's: the same packets with the same rules must leave byte for byte alike, and both must
// remember the same connections. Where the kernel takes a port at random, ours takes the same one, if it may. Needs
// root and nft. PENSTOCK_CONNTRACK_ROUNDS multiplies the number of conversations, PENSTOCK_CONNTRACK_SEED is their
// seed.

#include <netinet/in.h>
#include <sys/socket.h>

#include <cstring>

#include "conntrack/nat_choice.h"
#include "conntrack/testing/kernel_comparison.h"
#include "conntrack/testing/nat_kernel.h"
#include "conntrack/testing/sctp_packet.h"

namespace penstock::conntrack {
namespace {

std::string text_of(const Tuple& tuple) {
  const auto address = [&](const Ipv6Address& of) {
    return tuple.ip_version == 4 ? to_string(Ipv4Address{static_cast<std::uint32_t>(of.low)}) : to_string(of);
  };
  return fmt::format("{} {}:{} > {}:{}", tuple.protocol, address(tuple.source), tuple.source_port,
                     address(tuple.destination), tuple.destination_port);
}

/// As Linux forwards: one hop less.
void count_hop(Packet& packet) {
  if (packet[0] >> 4 == 6) {
    --packet[7];
    return;
  }
  --packet[8];
  // RFC 1141, as ip_decrease_ttl.
  std::uint32_t sum = (packet[10] << 8 | packet[11]) + 0x100U;
  sum = (sum + (sum >> 16)) & 0xffff;
  put_be16(packet, 10, sum == 0xffff ? 0 : sum);
}

/// Packets of hosts inside and outside, and answers to what has left the router.
class Traffic {
 public:
  Traffic(Random& random, bool may_close) : random_(random), may_close_(may_close) {}

  std::pair<Side, Packet> next() {
    while (true) {
      std::pair<Side, Packet> next = any();
      // The router takes no packets from itself.
      Tuple addresses;
      read_addresses(ParsedPacket(next.second).view(), addresses);
      const unsigned family = addresses.ip_version == 4 ? 0 : 1;
      if (addresses.source != address_of(kRouterOutside[family])) return next;
    }
  }
  void add(Side side, const Packet& input, const NatKernel::Output& output) {
    inputs_.emplace_back(side, input);
    outputs_.emplace_back(output.side, output.packet);
    constexpr std::size_t kRecent = 40;
    if (inputs_.size() > kRecent) inputs_.pop_front();
    if (outputs_.size() > kRecent) outputs_.pop_front();
  }

 private:
  std::pair<Side, Packet> any() {
    if (outputs_.empty() || random_.one_in(3)) return begin();
    const auto& [side, packet] = outputs_[random_.below(static_cast<std::uint32_t>(outputs_.size()))];
    switch (random_.below(6)) {
      case 0: return {side, error_about(packet)};
      case 1: return inputs_[random_.below(static_cast<std::uint32_t>(inputs_.size()))];
      default: return {side, answer_to(packet)};
    }
  }

  std::pair<Side, Packet> begin() {
    const bool v6 = random_.one_in(2), from_inside = !random_.one_in(3);
    const std::string inside =
        v6 ? fmt::format("2001:db8::{}", 1 + random_.below(4)) : fmt::format("10.1.0.{}", 1 + random_.below(4));
    const std::string outside =
        v6 ? fmt::format("2001:db8:2::{}", 1 + random_.below(3)) : fmt::format("10.2.0.{}", 1 + random_.below(3));
    const std::string of_router =
        v6 ? fmt::format("2001:db8:1::{}", 1 + random_.below(3)) : fmt::format("198.51.100.{}", 1 + random_.below(3));
    Ends ends{from_inside ? inside : outside, from_inside ? outside : inside,
              random_.of(std::array<std::uint16_t, 6>{100, 511, 600, 1000, 1024, 50000}),
              random_.of(std::array<std::uint16_t, 3>{53, 80, 8080})};
    if (random_.one_in(from_inside ? 6 : 2)) ends.destination = of_router;
    return {from_inside ? Side::inside : Side::outside, one(ends)};
  }

  Packet one(const Ends& ends) {
    switch (random_.below(12)) {
      case 0:
      case 1: return icmp_packet(ends, ends.is_v6() ? 128 : random_.one_in(4) ? 13 : 8, 0, ends.source_port);
      case 2: return ip_packet(ends, random_.one_in(2) ? 89 : ip_protocol::kGre, Packet(12, 0));
      case 3: {
        Packet packet = udp_packet(ends, random_.below(30));
        if (!ends.is_v6()) put_be16(packet, 26, 0);  // without a checksum
        return packet;
      }
      case 4:
      case 5:
      case 6: return udp_packet(ends, random_.below(30));
      default:
        return tcp_packet(ends, {.flags = TcpHeader::kSyn, .sequence = random_.any(), .payload = random_.below(9)});
    }
  }

  Packet answer_to(const Packet& packet) {
    ParsedPacket parsed(packet);
    Transport transport;
    if (!read_transport(parsed.view(), transport)) return packet;
    const Ends ends = ends_of(transport.tuple).reversed();
    switch (transport.tuple.protocol) {
      case ip_protocol::kUdp: return udp_packet(ends, random_.below(30));
      case ip_protocol::kTcp: {
        const TcpHeader& tcp = parsed.view().tcp();
        const bool syn = (tcp.flags & TcpHeader::kSyn) != 0;
        TcpFields fields{.sequence = tcp.acknowledgment.value(),
                         .ack = tcp.sequence.value() + (syn ? 1U : 0U) + parsed.descriptor.layout.end -
                                parsed.descriptor.layout.payload_offset,
                         .payload = random_.below(20)};
        if (syn && tcp.flags == TcpHeader::kSyn) fields.flags |= TcpHeader::kSyn, fields.payload = 0;
        if (may_close_ && random_.one_in(4)) fields.flags |= random_.one_in(2) ? TcpHeader::kFin : TcpHeader::kRst;
        return tcp_packet(ends, fields);
      }
      case ip_protocol::kIcmp:
      case ip_protocol::kIcmpv6:
        if (const std::optional<Tuple> answer = inverse_of(transport.tuple)) {
          return icmp_packet(ends, static_cast<std::uint8_t>(answer->destination_port >> 8), 0,
                             transport.tuple.source_port);
        }
        return packet;
      default: return ip_packet(ends, transport.tuple.protocol, Packet(12, 0));
    }
  }

  /// From a router or from its receiver, mostly to its sender.
  Packet error_about(Packet packet) {
    ParsedPacket parsed(packet);
    Transport transport;
    if (!read_transport(parsed.view(), transport)) return packet;
    Ends ends = ends_of(transport.tuple).reversed();
    if (random_.one_in(2)) ends.source = ends.is_v6() ? "2001:db8:8::8" : "10.8.0.8";
    if (random_.one_in(10)) std::swap(ends.source, ends.destination);
    const std::size_t header = header_length_of(ends.is_v6());
    if (random_.one_in(2)) packet.resize(std::min(packet.size(), header + random_.below(30)));
    const std::uint8_t type = random_.of(ends.is_v6() ? std::array<std::uint8_t, 6>{1, 2, 3, 4, 1, 137}
                                                      : std::array<std::uint8_t, 6>{3, 4, 5, 11, 12, 3});
    return icmp_packet(ends, type, 0, 0, packet);
  }

  static Ends ends_of(const Tuple& tuple) {
    const auto address = [&](const Ipv6Address& of) {
      return tuple.ip_version == 4 ? to_string(Ipv4Address{static_cast<std::uint32_t>(of.low)}) : to_string(of);
    };
    return {address(tuple.source), address(tuple.destination), tuple.source_port, tuple.destination_port};
  }

  Random& random_;
  bool may_close_;
  std::deque<std::pair<Side, Packet>> inputs_, outputs_;
};

/// Both translators with one set of rules.
class NatComparison {
 public:
  NatComparison(NatKernel& kernel, const NatRuleSet& rules) : kernel_(kernel), rules_(rules), table_(Options{}) {
    EXPECT_TRUE(kernel_.use(rules));
  }

  /// What leaves both; `same()` is false once something differs.
  std::optional<NatKernel::Output> send(Side side, const Packet& packet) {
    ParsedPacket parsed(packet);
    const Tracked tracked = table_.track(parsed.view(), now_ns());
    const bool begins =
        tracked.connection != nullptr && !tracked.connection->confirmed() && tracked.state == State::new_connection;
    const bool possible = !begins || translate(*tracked.connection);
    ParsedPacket rehearsal(packet);
    const bool leaves = possible && write(rehearsal.view(), tracked) && !is_to_router(rehearsal.view());
    const std::optional<NatKernel::Output> output = kernel_.forward(side, packet, leaves ? kLongMs : kShortMs);
    if (begins && possible && output) adopt(*tracked.connection);
    bool passes = possible && write(parsed.view(), tracked);
    const bool delivered = passes && is_to_router(parsed.view());
    passes = passes && !delivered;
    if (passes && tracked.connection != nullptr) passes = table_.confirm(*tracked.connection);
    Tuple addresses;
    read_addresses(parsed.view(), addresses);
    note(side, packet, tracked, passes ? "" : delivered ? ", delivered" : ", dropped");
    if (!passes && output) {
      fail(fmt::format("only the kernel forwards it: {}", hex(output->packet)));
    } else if (passes && !output) {
      fail("only we forward it");
    } else if (output) {
      compare(parsed.bytes, addresses, *output);
    }
    if (tracked.connection != nullptr && tracked.connection->confirmed()) compare_memory(*tracked.connection);
    translated_ += parsed.bytes != packet && tracked.state != State::related;
    related_ += parsed.bytes != packet && tracked.state == State::related;
    dropped_ += !passes && !delivered;
    return output;
  }

  [[nodiscard]] bool same() const { return same_; }
  /// Packets: translated; of them ICMP errors; dropped. Connections: whose port was taken at random.
  [[nodiscard]] std::array<std::size_t, 4> counts() const { return {translated_, related_, dropped_, adopted_}; }

 private:
  static constexpr int kLongMs = 300, kShortMs = 3;

  static bool write(PacketView packet, const Tracked& tracked) {
    return rewrite(packet, rewrite_for(tracked, Rewrite::kDestination)) &&
           rewrite(packet, rewrite_for(tracked, Rewrite::kSource));
  }
  static bool is_to_router(PacketView packet) {
    Tuple addresses;
    read_addresses(packet, addresses);
    const unsigned family = addresses.ip_version == 4 ? 0 : 1;
    return addresses.destination == address_of(kRouterOutside[family]) ||
           addresses.destination == address_of(kRouterInside[family]);
  }

  bool translate(Connection& connection) {
    const Tuple& original = connection.original;
    const bool to_public = lies_in(original.destination, original.ip_version, kPublic);
    if (!table_.translate(connection, NatKind::destination,
                          to_public ? rules_.destination.range(original) : NatRange{})) {
      return false;
    }
    source_ = from_inside_to_outside(connection) ? rules_.source.range(original) : NatRange{};
    destination_ = to_public ? rules_.destination.range(original) : NatRange{};
    before_source_ = connection.reply;
    return table_.translate(connection, NatKind::source, source_);
  }
  static bool from_inside_to_outside(const Connection& connection) {
    return lies_in(connection.original.source, connection.original.ip_version, kInside) &&
           !lies_in(connection.reply.source, connection.original.ip_version, kInside);
  }

  /// Takes the kernel's port, if both have taken one at random.
  void adopt(Connection& connection) {
    const std::optional<TrackingKernel::Entry> theirs = kernel_.find(connection.original);
    if (!theirs || theirs->tuples[1] == connection.reply) return;
    const Tuple& reply = theirs->tuples[1];
    const Tuple ours = *inverse_of(connection.reply), before = *inverse_of(before_source_);
    std::optional<Tuple> chosen = inverse_of(reply);
    if (!chosen) return;
    Tuple same_port = *chosen;
    same_port.source_port = ours.source_port;
    if (destination_.random_port() && !is_icmp(ours)) same_port.destination_port = ours.destination_port;
    const auto may_have = [&](const Tuple& tuple) {
      const PortSearch search = port_search(before, NatKind::source, source_);
      const bool random_source = tuple.source_port >= search.first &&
                                 tuple.source_port - search.first < static_cast<int>(search.count) &&
                                 (source_.random_port() || ours.source_port != before.source_port || is_icmp(ours));
      return random_source || tuple.source_port == ours.source_port;
    };
    bool reused = false;  // an earlier mapping, which is not random
    if (source_.flags != 0 && !source_.random_port()) {
      table_.for_each(0, 100'000, [&](const Connection& other) {
        const Tuple& original = other.original;
        reused = reused || (other.source_translated() && original.source == connection.original.source &&
                            original.source_port == connection.original.source_port &&
                            original.protocol == connection.original.protocol &&
                            other.reply.destination == connection.reply.destination &&
                            inverse_of(other.reply)->source_port == ours.source_port);
      });
    }
    if (same_port != ours || !may_have(*chosen) || reused) return;  // compare_memory will complain
    if (chosen->destination_port < destination_.first_port && destination_.random_port()) return;
    ++adopted_;
    connection.reply = reply;
    const auto status = static_cast<std::uint16_t>(theirs->status);
    connection.status |= status & (Connection::kSourceNat | Connection::kDestinationNat);
  }

  void compare(Packet ours, const Tuple& addresses, const NatKernel::Output& theirs) {
    const Side side = lies_in(addresses.destination, addresses.ip_version, kInside) ? Side::inside : Side::outside;
    count_hop(ours);
    if (side != theirs.side) return fail("leaves on the other side");
    if (ours != theirs.packet)
      fail(fmt::format("the kernel's packet is {}\n  ours             is {}", hex(theirs.packet), hex(ours)));
  }

  void compare_memory(const Connection& ours) {
    const std::optional<TrackingKernel::Entry> theirs = kernel_.find(ours.original);
    if (!theirs) return fail("only we keep a connection");
    if (theirs->tuples[0] != ours.original || theirs->tuples[1] != ours.reply) {
      return fail(fmt::format("the kernel's connection is {}, its reply {}; ours {}, {}", text_of(theirs->tuples[0]),
                              text_of(theirs->tuples[1]), text_of(ours.original), text_of(ours.reply)));
    }
    constexpr std::uint32_t kCompared = Connection::kSeenReply | Connection::kAssured | Connection::kConfirmed |
                                        Connection::kSourceNat | Connection::kDestinationNat |
                                        Connection::kSourceNatDone | Connection::kDestinationNatDone;
    if ((theirs->status & kCompared) != (ours.status & kCompared)) {
      return fail(
          fmt::format("the kernel's status is {}, ours {}", theirs->status & kCompared, ours.status & kCompared));
    }
    const auto remaining = static_cast<std::int64_t>(table_.remaining_ns(ours) / 1'000'000'000);
    const bool alike = ours.original.protocol != ip_protocol::kSctp;  // which has states in the kernel only
    if ((alike && std::abs(remaining - static_cast<std::int64_t>(theirs->timeout_s)) > 1) ||
        theirs->tcp_state != ours.tcp_state) {
      fail(fmt::format("the kernel's connection is in state {} for {} s, ours in {} for {} s",
                       static_cast<int>(theirs->tcp_state), theirs->timeout_s, static_cast<int>(ours.tcp_state),
                       remaining));
    }
    if (!table_contains(ours.reply)) fail("is not found by its reply");
  }
  bool table_contains(const Tuple& reply) {
    std::size_t found = 0;
    table_.for_each(0, 100'000, [&](const Connection& connection) { found += connection.reply == reply; });
    return found == 1;
  }

  void note(Side side, const Packet& packet, const Tracked& tracked, const std::string& what) {
    history_.push_back(fmt::format("from {}: {}  {}{}{}", side == Side::inside ? "inside" : "outside", hex(packet),
                                   describe(tracked.state, tracked.direction), what,
                                   tracked.connection == nullptr
                                       ? ""
                                       : fmt::format("; {}, reply {}", text_of(tracked.connection->original),
                                                     text_of(tracked.connection->reply))));
    constexpr std::size_t kHistory = 60;
    if (history_.size() > kHistory) history_.pop_front();
  }
  void fail(const std::string& problem) {
    if (!same_) return;
    same_ = false;
    std::string text;
    for (const std::string& line : history_) text += "\n  " + line;
    ADD_FAILURE() << rules_.name << ": " << problem << text;
  }

  NatKernel& kernel_;
  const NatRuleSet& rules_;
  Table table_;
  NatRange source_, destination_;  // of the last new connection
  Tuple before_source_;            // its reply, before its source was translated
  bool same_ = true;
  std::size_t translated_ = 0, related_ = 0, dropped_ = 0, adopted_ = 0;
  std::deque<std::string> history_;
};

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

class NatOracle : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    if (!kernel) kernel = NatKernel::start(why);
  }
  void SetUp() override {
    if (!kernel) GTEST_SKIP() << why;
  }

  static inline std::unique_ptr<NatKernel> kernel;
  static inline std::string why;
  static inline const std::uint64_t rounds = from_environment("PENSTOCK_CONNTRACK_ROUNDS", 1);
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
