// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Tables of several workers whose connections may get packets that come to another one: a tuple has one owner, and its
// packets find it.

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <iterator>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/testing/rounds.h"
#include "conntrack/connection_tables.h"
#include "conntrack/testing/translating_table.h"
#include "conntrack/tuple_owners.h"

namespace penstock::conntrack {
namespace {

const std::string kPublic = "192.0.2.1";
const NatRules kMasquerade{.source = to_address(kPublic)};

Tuple tuple_with(std::uint64_t number) {
  return {.source = {0, number >> 16},
          .destination = {0, 7},
          .source_port = static_cast<std::uint16_t>(number),
          .destination_port = 80,
          .protocol = ip_protocol::kUdp,
          .ip_version = 4};
}

TEST(TupleOwners, ATupleHasOneOwnerUntilThatLeaves) {
  TupleOwners owners(100);
  EXPECT_EQ(owners.find(tuple_with(1)), std::nullopt);
  const TupleOwners::Place place = owners.enter(tuple_with(1), 255);
  ASSERT_TRUE(TupleOwners::is_entered(place));
  EXPECT_EQ(owners.find(tuple_with(1)), 255U);
  EXPECT_EQ(owners.enter(tuple_with(1), 0), TupleOwners::kTaken);
  EXPECT_EQ(owners.enter(tuple_with(1), 255), TupleOwners::kTaken) << "also for its owner";
  EXPECT_EQ(owners.find(*inverse_of(tuple_with(1))), std::nullopt) << "the other direction is another tuple";
  owners.leave(place);
  EXPECT_EQ(owners.find(tuple_with(1)), std::nullopt);
  EXPECT_TRUE(TupleOwners::is_entered(owners.enter(tuple_with(1), 0)));
  EXPECT_EQ(owners.find(tuple_with(1)), 0U);
}

TEST(TupleOwners, HasRoomForAsManyAsItIsMadeForAndThenIsFull) {
  constexpr std::uint64_t kMost = 20'000;
  TupleOwners owners(kMost);
  std::vector<TupleOwners::Place> places;
  std::uint64_t number = 0;
  for (; number < kMost; ++number) {
    places.push_back(owners.enter(tuple_with(number), static_cast<unsigned>(number % 7)));
    ASSERT_TRUE(TupleOwners::is_entered(places.back())) << number;
  }
  while (TupleOwners::is_entered(owners.enter(tuple_with(number), 9))) ++number;
  EXPECT_EQ(owners.enter(tuple_with(number), 9), TupleOwners::kFull);
  for (std::uint64_t i = 0; i < kMost; ++i)
    EXPECT_EQ(owners.find(tuple_with(i)), i % 7) << "entered before it was full";
  for (const TupleOwners::Place place : places) owners.leave(place);
  EXPECT_TRUE(TupleOwners::is_entered(owners.enter(tuple_with(number), 9)));
}

TEST(TupleOwners, WorkersThatEnterTheSameTuplesNeverHaveOneTogether) {
  constexpr unsigned kWorkers = 4, kTuples = 40;
  TupleOwners owners(kTuples);
  std::array<std::atomic<unsigned>, kTuples> held{};  // by tuple: who has it, and 1
  std::atomic<unsigned> entered{0};
  std::vector<std::thread> threads;
  for (unsigned worker = 0; worker < kWorkers; ++worker) {
    threads.emplace_back([&, worker] {
      std::mt19937 random(worker);
      std::map<unsigned, TupleOwners::Place> own;
      for (std::uint32_t round = 0; round < testing::rounds(200'000); ++round) {
        const auto tuple = static_cast<unsigned>(random() % kTuples);
        if (const auto found = own.find(tuple); found != own.end()) {
          EXPECT_EQ(owners.find(tuple_with(tuple)), worker);
          EXPECT_EQ(held[tuple].exchange(0), worker + 1);
          owners.leave(found->second);
          own.erase(found);
        } else if (const auto place = owners.enter(tuple_with(tuple), worker); TupleOwners::is_entered(place)) {
          EXPECT_EQ(held[tuple].exchange(worker + 1), 0U) << "two have it";
          own.emplace(tuple, place);
          ++entered;
        } else {
          EXPECT_EQ(place, TupleOwners::kTaken);
          EXPECT_LT(owners.find(tuple_with(tuple)).value_or(0), kWorkers);
        }
      }
      for (const auto& [tuple, place] : own) {
        held[tuple] = 0;
        owners.leave(place);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_GT(entered, testing::rounds(10'000));
  for (unsigned tuple = 0; tuple < kTuples; ++tuple) EXPECT_EQ(owners.find(tuple_with(tuple)), std::nullopt);
}

/// Tables of two workers.
struct Pair {
  explicit Pair(const Options& options = {.most_connections = 1000}) : a(options), b(options) {
    const auto owners = std::make_shared<TupleOwners>(4000);
    a.table.share(owners, 0);
    b.table.share(owners, 1);
  }
  static std::optional<unsigned> owner_elsewhere(TranslatingTable& of, const Packet& packet) {
    ParsedPacket parsed(packet);
    const std::array packets{parsed.view()};
    std::array<std::optional<unsigned>, 1> owners;
    of.table.find_owners(packets, owners);
    return owners[0];
  }

  TranslatingTable a, b;
};

std::uint16_t source_port_of(const std::optional<Packet>& packet) {
  return packet ? static_cast<std::uint16_t>((*packet)[20] << 8 | (*packet)[21]) : std::uint16_t{0};
}

TEST(SharedTables, APortOfAnotherWorkersConnectionIsNotFree) {
  Pair pair;
  EXPECT_EQ(source_port_of(pair.a.forward(udp_packet({"10.1.0.1", "10.2.0.1"}), kMasquerade)), 1000);
  const auto second = pair.b.forward(udp_packet({"10.1.0.2", "10.2.0.1"}), kMasquerade);
  ASSERT_TRUE(second);
  EXPECT_NE(source_port_of(second), 1000);
  EXPECT_EQ(source_port_of(pair.b.forward(udp_packet({"10.1.0.3", "10.2.0.2"}), kMasquerade)), 1000)
      << "to another destination, it is free";
  pair.a.wait(100);
  pair.a.expire();
  EXPECT_EQ(source_port_of(pair.b.forward(udp_packet({"10.1.0.4", "10.2.0.1"}), kMasquerade)), 1000)
      << "the other one has ended";
}

TEST(SharedTables, NorIsThatOfAConnectionThatNoRuleTranslates) {
  Pair pair;
  // The host's own, by the public address.
  EXPECT_TRUE(pair.b.forward(udp_packet({kPublic, "10.2.0.1"})));
  const auto translated = pair.a.forward(udp_packet({"10.1.0.1", "10.2.0.1"}), kMasquerade);
  ASSERT_TRUE(translated);
  EXPECT_NE(source_port_of(translated), 1000);
  // And the other way round: the host's connection gets another port.
  EXPECT_EQ(source_port_of(pair.a.forward(udp_packet({"10.1.0.1", "10.2.0.1", 1001, 80}), kMasquerade)), 1001);
  const auto own = pair.b.forward(udp_packet({kPublic, "10.2.0.1", 1001, 80}));
  ASSERT_TRUE(own);
  EXPECT_NE(source_port_of(own), 1001);
}

TEST(SharedTables, AConnectionDoesNotBeginWithATupleThatAnotherWorkersConnectionHas) {
  Pair pair;
  ASSERT_TRUE(pair.a.forward(udp_packet({"10.1.0.1", "10.2.0.1"}), kMasquerade));
  const Packet reply = udp_packet({"10.2.0.1", kPublic, 80, 1000});
  EXPECT_EQ(Pair::owner_elsewhere(pair.b, reply), 0U);
  // Had it come a moment before the connection got the tuple:
  EXPECT_TRUE(pair.b.forward(reply)) << "it has no connection: nothing to translate";
  EXPECT_EQ(pair.b.last.state, State::invalid);
  EXPECT_EQ(pair.b.last.reason, Reason::full);
  EXPECT_EQ(pair.b.table.counters().clashes, 1U);
  EXPECT_EQ(pair.b.table.counters().connections, 0U);
}

TEST(SharedTables, TranslationsOfDestinationsAreKnownToo) {
  Pair pair;
  const NatRules forward_port{.destination = with_ports(to_address("10.1.0.7"), 8080, 8080)};
  ASSERT_TRUE(pair.a.forward(udp_packet({"10.9.0.1", kPublic, 4000, 80}), forward_port));
  EXPECT_EQ(Pair::owner_elsewhere(pair.b, udp_packet({"10.1.0.7", "10.9.0.1", 8080, 4000})), 0U);
  // Another way to the same server would have the same replies.
  const auto direct = pair.b.forward(udp_packet({"10.9.0.1", "10.1.0.7", 4000, 8080}));
  ASSERT_TRUE(direct);
  EXPECT_NE(source_port_of(direct), 4000);
}

TEST(SharedTables, PacketsFindTheWorkerOfTheirConnection) {
  for (const auto& [inside, outside] :
       {std::pair{Ends{}, Ends{kPublic, "10.2.0.1"}},
        std::pair{Ends{"2001:db8::1", "2001:db8:2::1"}, Ends{"2001:db8:1::9", "2001:db8:2::1"}}}) {
    Pair pair;
    const std::uint8_t unreachable = inside.is_v6() ? 1 : 3, echo = inside.is_v6() ? 128 : 8,
                       echo_reply = echo == 8 ? 0 : 129;
    const Packet reply = udp_packet(outside.reversed());
    EXPECT_EQ(Pair::owner_elsewhere(pair.b, reply), std::nullopt) << "nobody's yet";
    ASSERT_EQ(pair.a.forward(udp_packet(inside), {.source = to_address(outside.source)}), udp_packet(outside));
    EXPECT_EQ(Pair::owner_elsewhere(pair.b, reply), 0U);
    EXPECT_EQ(Pair::owner_elsewhere(pair.a, reply), std::nullopt) << "its own";
    EXPECT_EQ(Pair::owner_elsewhere(pair.b, udp_packet(inside)), 0U);
    EXPECT_EQ(Pair::owner_elsewhere(pair.b, udp_packet(outside)), std::nullopt) << "as it leaves, nobody's";
    // An ICMP error belongs to the connection of the packet that it quotes.
    const Packet error = icmp_packet({"10.8.0.1", kPublic}, 3, 1, 0, udp_packet(outside));
    if (!inside.is_v6()) {
      EXPECT_EQ(Pair::owner_elsewhere(pair.b, error), 0U);
      EXPECT_EQ(Pair::owner_elsewhere(pair.b, icmp_packet({"10.8.0.1", "10.7.7.7"}, 3, 1, 0, udp_packet(outside))),
                std::nullopt)
          << "not to the sender of that packet";
    }
    EXPECT_EQ(Pair::owner_elsewhere(
                  pair.b, icmp_packet({outside.destination, outside.source}, unreachable, 4, 0, udp_packet(outside))),
              0U);
    ASSERT_TRUE(pair.b.forward(icmp_packet(inside, echo, 0, 77), {.source = to_address(outside.source)}));
    EXPECT_EQ(Pair::owner_elsewhere(pair.a, icmp_packet(outside.reversed(), echo_reply, 0, 77)), 1U);
    pair.a.wait(100);
    pair.a.expire();
    EXPECT_EQ(Pair::owner_elsewhere(pair.b, reply), std::nullopt) << "it has ended";
  }
}

TEST(SharedTables, LaterFragmentsGoWhereTheirFirstOneWent) {
  Pair pair;
  ASSERT_TRUE(pair.a.forward(udp_packet({"10.1.0.1", "10.2.0.1"}), kMasquerade));
  const Packet reply = udp_packet({"10.2.0.1", kPublic, 80, 1000}, 100);
  const Packet first = fragment_of(reply, 0, 48, true), second = fragment_of(reply, 48, 108, false);
  EXPECT_EQ(Pair::owner_elsewhere(pair.b, second), std::nullopt);
  EXPECT_EQ(Pair::owner_elsewhere(pair.b, first), 0U);
  EXPECT_EQ(Pair::owner_elsewhere(pair.b, second), 0U);
  EXPECT_TRUE(pair.a.forward(first));
  EXPECT_EQ(Pair::owner_elsewhere(pair.a, second), std::nullopt);
  const Packet inside = fragment_of(udp_packet({"10.2.0.1", "10.1.0.1", 80, 1000}, 100), 48, 108, false);
  EXPECT_EQ(pair.a.forward(second), inside);
}

TEST(SharedTables, WhatAHelperExpectsFindsItsWorker) {
  Options options{.most_connections = 1000};
  options.ftp = {.offered = true, .ports = {21}};
  Pair pair(options);
  const Ends control{"10.1.0.1", "10.2.0.1", 4000, 21};
  const auto announces = [&](TranslatingTable& nat, const Ends& ends, const std::string& line) {
    nat.forward(tcp_packet(ends, {.flags = TcpHeader::kSyn, .sequence = 99}));
    nat.forward(tcp_packet(ends.reversed(), {.flags = TcpHeader::kSyn | TcpHeader::kAck, .sequence = 199, .ack = 100}));
    nat.forward(tcp_packet(ends, {.sequence = 100, .ack = 200}));
    nat.forward(tcp_packet(ends, {.sequence = 100, .ack = 200, .text = "USER me\r\n"}));
    return nat.forward(tcp_packet(ends, {.sequence = 109, .ack = 200, .text = line})).has_value();
  };
  const Packet data = tcp_packet({"10.2.0.1", "10.1.0.1", 20, 1029}, {.flags = TcpHeader::kSyn});
  EXPECT_EQ(Pair::owner_elsewhere(pair.b, data), std::nullopt);
  ASSERT_TRUE(announces(pair.a, control, "PORT 10,1,0,1,4,5\r\n"));
  EXPECT_EQ(Pair::owner_elsewhere(pair.b, data), 0U);
  Ends other = control;
  other.source_port = 4001;
  EXPECT_FALSE(announces(pair.b, other, "PORT 10,1,0,1,4,5\r\n")) << "expected already";
  ASSERT_TRUE(pair.a.forward(data));
  EXPECT_EQ(pair.a.last.state, State::related);
  EXPECT_EQ(Pair::owner_elsewhere(pair.b, data), 0U) << "its tuple is known now";
  EXPECT_EQ(Pair::owner_elsewhere(pair.b, tcp_packet({"10.2.0.1", "10.1.0.1", 21, 1029}, {.flags = TcpHeader::kSyn})),
            std::nullopt)
      << "only one was expected";
  EXPECT_EQ(Pair::owner_elsewhere(
                pair.b, tcp_packet({"10.1.0.1", "10.2.0.1", 1029, 20}, {.flags = TcpHeader::kSyn | TcpHeader::kAck})),
            0U);
}

TEST(SharedTables, AConnectionThatDoesNotPassLeavesItsTuples) {
  Pair pair;
  const Packet packet = udp_packet({"10.1.0.1", "10.2.0.1"});
  ASSERT_TRUE(pair.a.forward(packet, kMasquerade, true));
  EXPECT_EQ(Pair::owner_elsewhere(pair.b, udp_packet({"10.2.0.1", kPublic, 80, 1000})), 0U) << "before it is confirmed";
  pair.a.table.forget(*pair.a.last.connection);
  EXPECT_EQ(Pair::owner_elsewhere(pair.b, udp_packet({"10.2.0.1", kPublic, 80, 1000})), std::nullopt);
  EXPECT_EQ(Pair::owner_elsewhere(pair.b, packet), std::nullopt);
}

TEST(SharedTables, ConnectionsOfAnEarlierRunHaveTheirTuplesAgain) {
  Pair before;
  ASSERT_TRUE(before.a.forward(udp_packet({"10.1.0.1", "10.2.0.1"}), kMasquerade));
  const SavedConnection saved = saved_of(*before.a.last.connection, 30 * kSecond);
  Pair after;
  for (TranslatingTable* const nat : {&after.a, &after.b}) {
    nat->table.will_write(NatKind::source);
    nat->table.will_write(NatKind::destination);
    nat->table.restore(saved);
  }
  EXPECT_EQ(after.a.table.counters().connections, 1U);
  EXPECT_EQ(after.b.table.counters().connections, 0U) << "another worker has it";
  EXPECT_EQ(Pair::owner_elsewhere(after.b, udp_packet({"10.2.0.1", kPublic, 80, 1000})), 0U);
}

/// Workers begin and end random connections at the same time, with so few ports that they often want the same. A map
/// under a lock knows all tuples that are in use.
TEST(SharedTables, ConnectionsOfAllWorkersHaveDifferentTuples) {
  constexpr unsigned kWorkers = 4;
  struct Use {
    unsigned worker;
    Packet packet;  // with this tuple
  };
  const auto key_of = [](const Tuple& t) {
    return std::array<std::uint64_t, 4>{t.source.low, t.destination.low,
                                        std::uint64_t{t.source_port} << 16 | t.destination_port, t.protocol};
  };
  const auto packet_with = [](const Tuple& t) {
    const auto text = [](const Ipv6Address& of) { return to_string(Ipv4Address{static_cast<std::uint32_t>(of.low)}); };
    return udp_packet({text(t.source), text(t.destination), t.source_port, t.destination_port});
  };
  std::mutex lock;
  std::map<std::array<std::uint64_t, 4>, Use> in_use;
  std::atomic<unsigned> begun{0}, moved{0}, refused{0}, found{0};

  const auto owners = std::make_shared<TupleOwners>(std::uint64_t{kWorkers} * 2 * 4096);
  std::vector<std::thread> threads;
  for (unsigned worker = 0; worker < kWorkers; ++worker) {
    threads.emplace_back([&, worker] {
      TranslatingTable nat(Options{.most_connections = 4096});
      nat.table.share(owners, worker);
      std::mt19937 random(worker + 1);
      std::vector<std::uint32_t> own;  // connections, by index
      const NatRange few = with_ports(to_address(kPublic), 1000, 1063);
      const auto end_one = [&](std::size_t which) {
        Connection& connection = nat.table.at(own[which]);
        {
          const std::lock_guard guard(lock);
          for (const Tuple* const tuple : {&connection.original, &connection.reply})
            EXPECT_EQ(in_use.erase(key_of(*tuple)), 1U);
        }
        nat.table.flush(connection);
        own[which] = own.back();
        own.pop_back();
      };
      for (std::uint32_t round = 0; round < testing::rounds(30'000); ++round) {
        const auto port = static_cast<std::uint16_t>(1000 + random() % 64);
        const std::string server = "10.2.0." + std::to_string(1 + random() % 2);
        switch (random() % 4) {
          case 0:    // one of a host inside, whose packets come to this worker
          case 1: {  // or of the router itself: all workers may have the same ones
            const bool router = random() % 3 == 0;
            const std::string host = "10.1." + std::to_string(worker) + "." + std::to_string(1 + random() % 9);
            const Packet packet = udp_packet({router ? kPublic : host, server, port, 80});
            if (Pair::owner_elsewhere(nat, packet)) break;
            const auto left = nat.forward(packet, {.source = router ? NatRange{} : few});
            const Connection* const connection = nat.last.connection;
            if (!left || connection == nullptr) {
              ++refused;
              // As a firewall does with a packet that does not get a translation.
              if (connection != nullptr && !connection->confirmed()) nat.table.forget(*nat.last.connection);
              break;
            }
            const std::uint32_t index = nat.table.index_of(*connection);
            if (std::ranges::find(own, index) != own.end()) break;  // it is known
            own.push_back(index);
            ++begun;
            if (inverse_of(connection->reply)->source_port != port) ++moved;
            const std::lock_guard guard(lock);
            for (const Tuple* const tuple : {&connection->original, &connection->reply}) {
              const auto added = in_use.try_emplace(key_of(*tuple), Use{worker, packet_with(*tuple)});
              EXPECT_TRUE(added.second) << "worker " << worker << " has a tuple of worker "
                                        << added.first->second.worker;
            }
            break;
          }
          case 2:
            if (own.size() > random() % 100) end_one(random() % own.size());
            break;
          case 3: {
            const std::lock_guard guard(lock);  // nobody ends it meanwhile
            if (in_use.empty()) break;
            const auto one = std::next(in_use.begin(), static_cast<std::ptrdiff_t>(random() % in_use.size()));
            const auto owner = Pair::owner_elsewhere(nat, one->second.packet);
            EXPECT_EQ(owner.value_or(worker), one->second.worker);
            ++found;
          }
        }
      }
      while (!own.empty()) end_one(0);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_TRUE(in_use.empty());
  EXPECT_GT(begun, testing::rounds(10'000));
  EXPECT_GT(moved, begun / 10) << "few wanted the same ports";
  EXPECT_GT(found, testing::rounds(10'000));
}

}  // namespace
}  // namespace penstock::conntrack
