// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "conntrack/table_access.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdio>
#include <memory>
#include <numeric>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "base/testing/rounds.h"
#include "conntrack/testing/clocked_table.h"

namespace penstock::conntrack {
namespace {

using Request = TableAccess::Request;
using Kind = Request::Kind;

std::unique_ptr<TableAccess> make_access(std::uint32_t connections = 65'536) {
  return std::make_unique<TableAccess>(Options{.most_connections = connections}, Clock::packets);
}

constexpr std::uint64_t kNow = 1'700'000'000 * kSecond;

void pass(TableAccess& access, const Packet& packet, std::uint64_t now_ns = kNow) {
  ParsedPacket parsed(packet);
  const Tracked tracked = access.table().track(parsed.view(), now_ns);
  if (tracked.connection != nullptr) access.table().confirm(*tracked.connection);
}
Packet query(unsigned number) {
  return udp_packet({.source = "10.1." + std::to_string(number / 50'000) + ".1",
                     .source_port = static_cast<std::uint16_t>(number % 50'000 + 1),
                     .destination_port = 53});
}

/// The number of boundaries until the answer is there.
unsigned serve(TableAccess& access, bool busy = false) {
  for (unsigned boundaries = 1;; ++boundaries) {
    if (busy) pass(access, query(0));
    access.pass_boundary();
    if (access.answer() != nullptr) return boundaries;
  }
}
std::uint64_t total(const TableAccess::Answer& answer) {
  return std::accumulate(answer.by_protocol.begin(), answer.by_protocol.end(), std::uint64_t{0});
}
std::uint64_t ask_for_count(TableAccess& access, const Filter& filter = {}, Kind kind = Kind::count) {
  EXPECT_TRUE(access.ask({kind, filter, 0}));
  serve(access);
  const std::uint64_t count = total(*access.answer());
  access.release();
  return count;
}

TEST(TableAccess, ListsAllConnectionsInPortions) {
  const auto access = make_access();
  constexpr unsigned kCount = 10'000;
  for (unsigned i = 0; i < kCount; ++i) pass(*access, query(i));
  std::set<std::uint16_t> ports;
  std::uint32_t from = 0, answers = 0;
  do {
    ASSERT_TRUE(access->ask({Kind::list, {}, from}));
    EXPECT_FALSE(access->ask({Kind::count, {}, 0})) << "one is under way";
    serve(*access);
    const TableAccess::Answer& answer = *access->answer();
    EXPECT_LE(answer.records, TableAccess::Answer::kMostRecords);
    for (std::uint32_t i = 0; i < answer.records; ++i) {
      const Record& record = answer.record_array[i];
      EXPECT_EQ(record.remaining_ns, 30 * kSecond);
      EXPECT_EQ(record.reply.source_port, 53);
      ports.insert(record.original.source_port);
    }
    from = answer.next;
    ++answers;
    access->release();
  } while (from != 0);
  EXPECT_EQ(ports.size(), kCount);
  EXPECT_EQ(answers, 3U);
}

TEST(TableAccess, LooksAtFewPositionsWhilePacketsCome) {
  const auto access = make_access();
  for (unsigned i = 0; i < 16'384; ++i) pass(*access, query(i));
  access->pass_boundary();
  ASSERT_TRUE(access->ask({Kind::count, {}, 0}));
  EXPECT_EQ(serve(*access, true), 16'384U / 256);
  EXPECT_EQ(total(*access->answer()), 16'384U);
  access->release();
  access->pass_boundary();
  ASSERT_TRUE(access->ask({Kind::count, {}, 0}));
  EXPECT_EQ(serve(*access), 16'384U / 4096);
  access->release();
  // What is removed takes longer.
  ASSERT_TRUE(access->ask({Kind::flush, {}, 0}));
  EXPECT_GT(serve(*access), 16'384U / 4096);
  EXPECT_EQ(total(*access->answer()), 16'384U);
  EXPECT_EQ(access->table().counters().connections, 0U);
}

TEST(TableAccess, ARequestThatNobodyWaitsForMakesRoomForTheNextOne) {
  const auto access = make_access();
  pass(*access, query(1));
  ASSERT_TRUE(access->ask({Kind::list, {}, 0}));
  access->release();
  EXPECT_FALSE(access->ask({Kind::count, {}, 0})) << "the worker may be serving it";
  access->pass_boundary();
  EXPECT_EQ(ask_for_count(*access), 1U);
}

TEST(TableAccess, FlushesOnlyWhatMatches) {
  const auto access = make_access();
  for (unsigned i = 0; i < 100; ++i) pass(*access, query(i));
  for (std::uint16_t port = 1; port <= 50; ++port)
    pass(*access, tcp_packet({.source = "2001:db8::1", .destination = "2001:db8::2", .source_port = port},
                             {.flags = TcpHeader::kSyn}));
  EXPECT_EQ(ask_for_count(*access, {.protocol = 6}, Kind::flush), 50U);
  EXPECT_EQ(access->table().counters().connections, 100U);
  EXPECT_EQ(ask_for_count(*access, {.source_port = std::uint16_t{7}}, Kind::flush), 1U);
  EXPECT_EQ(ask_for_count(*access), 99U);
  pass(*access, query(6));
  EXPECT_EQ(ask_for_count(*access), 100U) << "a connection that was removed begins anew";
}

TEST(TableAccess, FiltersByWhatOperatorsName) {
  const auto access = make_access();
  pass(*access, query(1));
  pass(*access, udp_packet({"2001:db8::1", "2001:db8:1::2", 1000, 53}));
  pass(*access, icmp_packet({"10.1.0.9", "10.2.0.1", 0, 0}, 8, 0, 53));
  const Ends tcp{"10.1.0.1", "192.0.2.7", 4000, 443};
  pass(*access, tcp_packet(tcp, {.flags = TcpHeader::kSyn, .sequence = 1}));
  pass(*access, tcp_packet(tcp.reversed(), {.flags = TcpHeader::kSyn | TcpHeader::kAck, .sequence = 5, .ack = 2}));
  const auto count = [&](const Filter& filter) { return ask_for_count(*access, filter); };
  EXPECT_EQ(count({}), 4U);
  EXPECT_EQ(count({.ip_version = 6}), 1U);
  EXPECT_EQ(count({.protocol = std::uint8_t{17}}), 2U);
  EXPECT_EQ(count({.source = read_prefix("10.1.0.0/16")}), 3U);
  EXPECT_EQ(count({.source = read_prefix("10.1.0.1")}), 2U);
  EXPECT_EQ(count({.source = read_prefix("0.0.0.0/0")}), 3U) << "of IPv4";
  EXPECT_EQ(count({.destination = read_prefix("2001:db8:1::/48")}), 1U);
  EXPECT_EQ(count({.destination = read_prefix("::/0")}), 1U) << "of IPv6";
  EXPECT_EQ(count({.destination_port = std::uint16_t{53}}), 2U) << "not the identifier of a ping";
  EXPECT_EQ(count({.source_port = std::uint16_t{53}}), 0U);
  EXPECT_EQ(count({.tcp_state = TcpState::syn_recv}), 1U);
  EXPECT_EQ(count({.tcp_state = TcpState::established}), 0U);
  EXPECT_EQ(count({.status_clear = Connection::kSeenReply}), 3U);
  EXPECT_EQ(count({.status_set = Connection::kAssured}), 0U);
}

TEST(Names, AreThoseOfLinux) {
  EXPECT_EQ(protocol_name(6), "tcp");
  EXPECT_EQ(protocol_name(200), "unknown");
  EXPECT_EQ(protocol_named("icmpv6"), 58);
  EXPECT_EQ(protocol_named("132"), 132);
  EXPECT_EQ(protocol_named("256"), std::nullopt);
  EXPECT_EQ(protocol_named("unknown"), std::nullopt);
  EXPECT_EQ(read_prefix("10.0.0.1/8"), std::nullopt) << "host bits";
  EXPECT_EQ(name(TcpState::syn_sent2), "SYN_SENT2");
}

std::vector<std::string> events_of(TableAccess& access) {
  std::vector<std::string> events;
  Event event;
  while (access.events().take(event)) {
    const std::string kind = event.kind == EventKind::begun     ? "new "
                             : event.kind == EventKind::changed ? "update "
                                                                : "destroy ";
    events.push_back(kind + std::string(name(event.record.tcp_state)));
  }
  return events;
}

using Texts = std::vector<std::string>;

TEST(ConnectionEvents, TellTheLifeOfATcpConnection) {
  const auto access = make_access();
  pass(*access, query(1));
  access->events().begin();
  const Ends ends;
  pass(*access, tcp_packet(ends, {.flags = TcpHeader::kSyn, .sequence = 1000}));
  EXPECT_EQ(events_of(*access), (Texts{"new SYN_SENT"}));
  const auto syn_ack = TcpHeader::kSyn | TcpHeader::kAck;
  pass(*access, tcp_packet(ends.reversed(), {.flags = syn_ack, .sequence = 5000, .ack = 1001}));
  pass(*access, tcp_packet(ends, {.sequence = 1001, .ack = 5001}));
  pass(*access, tcp_packet(ends, {.sequence = 1001, .ack = 5001}));
  EXPECT_EQ(events_of(*access), (Texts{"update SYN_RECV", "update ESTABLISHED"})) << "nothing about the last one";
  pass(*access, tcp_packet(ends, {.flags = TcpHeader::kRst | TcpHeader::kAck, .sequence = 1001, .ack = 5001}));
  access->table().expire(kNow + 500 * kSecond);
  EXPECT_EQ(events_of(*access), (Texts{"update CLOSE", "destroy CLOSE", "destroy "}));
  access->events().end();
  pass(*access, query(2));
  EXPECT_EQ(events_of(*access), Texts());
}

TEST(ConnectionEvents, WithoutRoomAreCounted) {
  const auto access = make_access();
  access->events().begin();
  for (unsigned i = 0; i < EventQueue::kCapacity + 17; ++i) pass(*access, query(i));
  EXPECT_EQ(access->events().take_lost(), 17U);
  EXPECT_EQ(access->events().take_lost(), 0U);
  EXPECT_EQ(events_of(*access).size(), EventQueue::kCapacity);
  pass(*access, query(60'000));
  EXPECT_EQ(events_of(*access).size(), 1U);
}

TEST(ConnectionEvents, OfAnEarlierReaderAreForgotten) {
  const auto access = make_access();
  access->events().begin();
  for (unsigned i = 0; i < EventQueue::kCapacity + 1; ++i) pass(*access, query(i));
  access->events().end();
  access->events().begin();
  EXPECT_EQ(access->events().take_lost(), 0U);
  EXPECT_EQ(events_of(*access), Texts());
}

TEST(TableAccess, ServesAnotherThreadWhilePacketsAreTracked) {
  const auto access = make_access(4096);
  const auto rounds = static_cast<unsigned>(testing::rounds(90));
  std::atomic<bool> stop{false};
  std::thread worker([&] {
    for (unsigned i = 0; !stop.load(); ++i) {
      access->pass_boundary();
      for (unsigned packet = 0; packet < 32; ++packet) pass(*access, query((i * 32 + packet) % 50'000));
    }
  });
  access->events().begin();
  std::uint64_t events = 0, lost = 0, removed = 0, listed = 0;
  for (unsigned round = 0; round < rounds; ++round) {
    const Kind kind = round % 3 == 0 ? Kind::list : round % 3 == 1 ? Kind::count : Kind::flush;
    while (
        !access->ask({kind, {.source_port = kind == Kind::flush ? std::optional<std::uint16_t>(7) : std::nullopt}, 0}))
      std::this_thread::yield();
    if (round % 7 == 6) {
      access->release();  // before the answer has come
      continue;
    }
    while (access->answer() == nullptr) std::this_thread::yield();
    const TableAccess::Answer& answer = *access->answer();
    for (std::uint32_t i = 0; i < answer.records; ++i) EXPECT_EQ(answer.record_array[i].original.destination_port, 53);
    listed += answer.records;
    if (kind == Kind::flush) removed += total(answer);
    access->release();
    Event event;
    while (access->events().take(event)) {
      EXPECT_EQ(event.record.original.destination_port, 53);
      ++events;
    }
    lost += access->events().take_lost();
  }
  stop = true;
  worker.join();
  EXPECT_GT(listed, 0U);
  EXPECT_GT(events, 0U);
  std::printf("%llu listed, %llu removed, %llu events, %llu lost\n", static_cast<unsigned long long>(listed),
              static_cast<unsigned long long>(removed), static_cast<unsigned long long>(events),
              static_cast<unsigned long long>(lost));
}

}  // namespace
}  // namespace penstock::conntrack
