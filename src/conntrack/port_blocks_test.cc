// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Ports in blocks: who gets which, when they are free again, and that what the observer was told says who had them.

#include "conntrack/port_blocks.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/testing/rounds.h"
#include "conntrack/connection_tables.h"
#include "conntrack/subscriber_ports.h"
#include "conntrack/testing/translating_table.h"

namespace penstock::conntrack {
namespace {

const std::string kPublic = "192.0.2.1";
constexpr std::uint32_t kHold = 120;

class Events final : public BlockObserver {
 public:
  explicit Events(std::vector<BlockEvent>& to) : to_(to) {}
  void tell(const BlockEvent& event) noexcept override { to_.push_back(event); }

 private:
  std::vector<BlockEvent>& to_;
};

/// Blocks of 64 ports, the last `blocks` of each address.
PortBlockOptions small(std::uint16_t blocks, std::uint16_t per_host, std::uint32_t hold = kHold) {
  return {.size = 64,
          .per_host = per_host,
          .first_port = static_cast<std::uint16_t>(0x10000 - 64 * blocks),
          .hold_s = hold,
          .most_addresses = 4};
}

struct BlockTable : TranslatingTable {
  explicit BlockTable(const PortBlockOptions& of) : BlockTable(of, std::make_unique<std::vector<BlockEvent>>()) {}

  /// The public end of the packet as it leaves; port 0: it is dropped.
  std::pair<std::string, std::uint16_t> leave(const Packet& packet, const NatRange& to = to_address(kPublic)) {
    if (!forward(packet, {.source = to})) return {"", std::uint16_t{0}};
    const Tuple tuple = *inverse_of(last.connection->reply);
    return {tuple.ip_version == 4 ? to_string(Ipv4Address{static_cast<std::uint32_t>(tuple.source.low)})
                                  : to_string(tuple.source),
            tuple.source_port};
  }
  /// The public port of a new UDP connection.
  std::uint16_t port(const std::string& host, std::uint16_t socket, const std::string& to = "10.2.0.1") {
    return leave(udp_packet({host, to, socket})).second;
  }

  std::unique_ptr<std::vector<BlockEvent>> events;
  std::shared_ptr<PortBlocks> blocks;

 private:
  BlockTable(const PortBlockOptions& of, std::unique_ptr<std::vector<BlockEvent>> to)
      : BlockTable(of, std::make_shared<PortBlocks>(of, 1, std::make_unique<Events>(*to)), to) {}
  BlockTable(const PortBlockOptions& of, const std::shared_ptr<PortBlocks>& shared,
             std::unique_ptr<std::vector<BlockEvent>>& to)
      : TranslatingTable(Options{.port_blocks = of}, shared), events(std::move(to)), blocks(shared) {}
};

bool released(const BlockEvent& event) { return event.kind == BlockEvent::Kind::released; }

TEST(PortBlocks, ConnectionsGetPortsOfTheirHostsBlock) {
  BlockTable nat({});
  std::set<std::uint16_t> ports;
  for (std::uint16_t socket = 1; socket <= 512; ++socket) ports.insert(nat.port("10.1.0.1", socket));
  EXPECT_EQ(ports.size(), 512U);
  EXPECT_EQ(*ports.begin(), 1024);
  EXPECT_EQ(*ports.rbegin(), 1535);
  ASSERT_EQ(nat.events->size(), 1U);
  const BlockEvent& event = nat.events->front();
  EXPECT_EQ(event.kind, BlockEvent::Kind::allocated);
  EXPECT_EQ(event.subscriber, (Subscriber{address_of("10.1.0.1"), 4}));
  EXPECT_EQ(event.address, address_of(kPublic));
  EXPECT_EQ(std::pair(event.first_port, event.last_port), std::pair(std::uint16_t{1024}, std::uint16_t{1535}));
  EXPECT_EQ(event.time_ns, nat.now_ns);
  EXPECT_EQ(nat.port("10.1.0.1", 513) / 512, 3) << "another block";
  EXPECT_EQ(nat.port("10.1.0.2", 1) / 512, 4) << "another host";
  EXPECT_EQ(nat.events->size(), 3U);
}

TEST(PortBlocks, RepliesComeBack) {
  BlockTable nat({});
  for (const auto& [inside, address] : {std::pair{Ends{}, kPublic}, {{"fd00::1", "2001:db8::1"}, "2001:db8:1::9"}}) {
    const auto [outside, port] = nat.leave(udp_packet(inside), to_address(address));
    EXPECT_EQ(outside, address);
    EXPECT_EQ(nat.forward(udp_packet(Ends{outside, inside.destination, port, 80}.reversed())),
              udp_packet(inside.reversed()));
    EXPECT_EQ(nat.last.state, State::established);
  }
}

TEST(PortBlocks, ASocketKeepsItsPortWhateverItsDestinationIs) {
  BlockTable nat({});
  const std::uint16_t port = nat.port("10.1.0.1", 4000);
  EXPECT_EQ(nat.port("10.1.0.1", 4000, "10.2.0.2"), port);
  nat.wait(25);
  EXPECT_EQ(nat.port("10.1.0.1", 4000, "10.2.0.3"), port);
  nat.wait(10);
  nat.expire();
  EXPECT_EQ(nat.port("10.1.0.1", 4000, "10.2.0.4"), port) << "one connection still has it";
  EXPECT_NE(nat.port("10.1.0.1", 4001), port);
  const auto [address, identifier] = nat.leave(icmp_packet({"10.1.0.1", "10.2.0.1"}, 8, 0, 4000));
  EXPECT_EQ(identifier / 512, 2) << "identifiers come from the same block";
}

TEST(PortBlocks, TwoConnectionsToOneDestinationGetTwoPorts) {
  BlockTable nat({});
  const NatRules first{.destination = to_address("10.3.0.1"), .source = to_address(kPublic)};
  ASSERT_TRUE(nat.forward(udp_packet({.destination = "10.2.0.1"}), first));
  const Tuple one = nat.last.connection->reply;
  ASSERT_TRUE(nat.forward(udp_packet({.destination = "10.2.0.2"}), first));
  const Tuple other = nat.last.connection->reply;
  EXPECT_EQ(one.source, other.source);
  EXPECT_NE(one.destination_port, other.destination_port);
}

TEST(PortBlocks, AHostHasOneAddressAndAtMostSoManyBlocks) {
  BlockTable nat(small(8, 2));
  const NatRange range = to_addresses("192.0.2.1", "192.0.2.4");
  for (const std::string host : {"10.1.0.1", "10.1.0.2", "10.1.0.3"}) {
    std::set<std::string> addresses;
    for (std::uint16_t socket = 1; socket <= 128; ++socket)
      addresses.insert(nat.leave(udp_packet({host, "10.2.0.1", socket}), range).first);
    EXPECT_EQ(addresses.size(), 1U);
    EXPECT_EQ(nat.leave(udp_packet({host, "10.2.0.1", 129}), range).second, 0);
    EXPECT_NE(nat.leave(icmp_packet({host, "10.2.0.1"}, 8, 0, 4000), range).second, 0) << "those are not used up";
  }
  EXPECT_EQ(nat.table.counters().over_block_limit, 3U);
  EXPECT_EQ(nat.table.counters().no_free_port, 3U);
  EXPECT_EQ(nat.events->size(), 6U);
}

TEST(PortBlocks, PacketsOfAConnectionWithoutAPortAreAllDropped) {
  BlockTable nat(small(1, 1));
  EXPECT_NE(nat.port("10.1.0.1", 1), 0);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(nat.port("10.1.0.2", 1), 0);
  EXPECT_EQ(nat.table.counters().no_free_block, 3U);
  EXPECT_EQ(nat.table.counters().confirmed, 1U);
}

TEST(PortBlocks, ProtocolsWithoutPortsAreRefused) {
  BlockTable nat({});
  EXPECT_FALSE(nat.forward(ip_packet({}, 89, Packet(8)), {.source = to_address(kPublic)}));
  EXPECT_EQ(nat.table.counters().without_ports, 1U);
  EXPECT_TRUE(nat.forward(ip_packet({}, 89, Packet(8)))) << "no rule translates it";
}

TEST(PortBlocks, ABlockStaysWithItsHostForAWhile) {
  BlockTable nat(small(1, 1));
  EXPECT_NE(nat.port("10.1.0.1", 1), 0);
  nat.wait(31);  // the connection has ended
  nat.expire();
  EXPECT_EQ(nat.port("10.1.0.2", 1), 0);
  nat.wait(kHold - 1);
  nat.expire();
  EXPECT_EQ(nat.port("10.1.0.2", 1), 0);
  EXPECT_EQ(nat.events->size(), 1U);
  nat.wait(1);
  nat.expire();
  EXPECT_NE(nat.port("10.1.0.2", 1), 0);
  ASSERT_EQ(nat.events->size(), 3U);
  EXPECT_TRUE(released(nat.events->at(1)));
  EXPECT_EQ(nat.events->at(1).time_ns, nat.now_ns);
  EXPECT_EQ(nat.events->at(1).subscriber.address, address_of("10.1.0.1"));
}

TEST(PortBlocks, TimesFollowAClockThatIsSetBack) {
  BlockTable nat(small(4, 1));
  EXPECT_NE(nat.port("10.1.0.1", 1), 0);
  const std::uint64_t before = nat.now_ns;
  nat.now_ns -= 1;  // of a worker that is behind
  EXPECT_NE(nat.port("10.1.0.2", 1), 0);
  nat.now_ns = before - 3600 * kSecond;
  EXPECT_NE(nat.port("10.1.0.3", 1), 0);
  nat.wait(1);
  EXPECT_NE(nat.port("10.1.0.4", 1), 0);
  ASSERT_EQ(nat.events->size(), 4U);
  EXPECT_EQ(nat.events->at(1).time_ns, before);
  EXPECT_EQ(nat.events->at(2).time_ns, before - 3600 * kSecond);
  EXPECT_EQ(nat.events->at(3).time_ns, before - 3599 * kSecond);
}

TEST(PortBlocks, ItsHostGoesOnWithABlockMeanwhile) {
  BlockTable nat(small(1, 1));
  for (int i = 0; i < 4; ++i) {
    EXPECT_NE(nat.port("10.1.0.1", 1), 0);
    nat.wait(31 + kHold - 2);
    nat.expire();
  }
  EXPECT_EQ(nat.events->size(), 1U);
}

TEST(PortBlocks, AResetFreesThePort) {
  BlockTable nat(small(1, 1));
  std::set<std::uint16_t> ports;
  for (int i = 0; i < 200; ++i) {
    const Ends inside{"10.1.0.1", "10.2.0.1", static_cast<std::uint16_t>(1000 + i)};
    const auto [address, port] = nat.leave(tcp_packet(inside, {.flags = TcpHeader::kSyn}));
    ASSERT_NE(port, 0) << i;
    static_cast<void>(nat.forward(tcp_packet(Ends{address, "10.2.0.1", port}.reversed(),
                                             {.flags = TcpHeader::kRst | TcpHeader::kAck, .ack = 1})));
    nat.wait(11);
    nat.expire();
  }
}

TEST(PortBlocks, MoreAddressesThanThereIsRoomFor) {
  PortBlockOptions options = small(2, 1);
  options.most_addresses = 2;
  BlockTable nat(options);
  const NatRange range = to_addresses("192.0.2.0", "192.0.2.255");
  std::set<std::string> addresses;
  for (std::uint16_t host = 1; host <= 4; ++host)
    addresses.insert(nat.leave(udp_packet({"10.1.0." + std::to_string(host)}), range).first);
  EXPECT_EQ(addresses.size(), 2U);
  EXPECT_EQ(nat.leave(udp_packet({"10.1.0.5"}), range).second, 0);
  nat.wait(31);
  nat.expire();
  nat.wait(kHold);
  nat.expire();
  EXPECT_EQ(nat.blocks->usage().addresses, 0U);
  EXPECT_EQ(nat.leave(udp_packet({"10.1.0.5"}), to_address("198.51.100.1")).first, "198.51.100.1")
      << "one that is not used any more makes room";
}

TEST(PortBlocks, ConnectionsOfAnEarlierRunTakeTheirBlocksAgain) {
  const Options options{.port_blocks = small(4, 2)};
  BlockTable before(*options.port_blocks);
  const std::uint16_t port = before.port("10.1.0.1", 1000);
  std::vector<SavedConnection> saved;
  saved.push_back(saved_of(*before.last.connection, 20 * kSecond));
  saved.push_back(saved.front());  // of another host, with the same port
  saved.back().record.original.source = address_of("10.1.0.2");
  saved.back().record.reply.source = address_of("10.2.0.9");
  saved.back().record.original.destination = address_of("10.2.0.9");

  std::vector<BlockEvent> events;
  ConnectionTables tables(options, Clock::packets);
  tables.observe(std::make_unique<Events>(events));
  tables.restore(saved, [](const Tuple&, unsigned) { return 0U; });
  const auto access = tables.add_worker();
  access->table().will_write(NatKind::source);
  access->table().will_write(NatKind::destination);
  access->pass_boundary();
  EXPECT_EQ(access->table().counters().connections, 1U) << "the other one could not be told from it";
  EXPECT_EQ(tables.port_blocks()->usage().blocks, 1U);
  EXPECT_TRUE(events.empty()) << "the time of the run is not known yet";
  access->table().expire(before.now_ns + kSecond);
  ASSERT_EQ(events.size(), 1U);
  EXPECT_EQ(events[0].time_ns, before.now_ns + kSecond);
  EXPECT_EQ(events[0].subscriber.address, address_of("10.1.0.1"));
  EXPECT_LE(events[0].first_port, port);
  EXPECT_GE(events[0].last_port, port);
  tables.end();
  ASSERT_EQ(events.size(), 2U);
  EXPECT_TRUE(released(events[1]));
}

TEST(PortBlocks, WorkersNeverHaveTheSamePort) {
  constexpr unsigned kWorkers = 3;
  const PortBlockOptions options = small(16, 3, 0);
  const auto blocks = std::make_shared<PortBlocks>(options, 1);
  std::vector<std::atomic<unsigned>> owners(0x10000);  // by port; 0: nobody
  const NatRange range = to_address(kPublic);
  const auto work = [&](unsigned worker) {
    constexpr std::uint32_t kConnections = 20;
    SubscriberPorts ports(blocks, kConnections, worker);
    std::mt19937 random(worker);
    std::array<std::uint16_t, kConnections> port_of{};
    for (std::uint32_t step = 0; step < testing::rounds(60'000); ++step) {
      ports.set_time(step, step);
      ports.expire();
      const std::uint32_t connection = static_cast<std::uint32_t>(random() % kConnections);
      if (port_of[connection] != 0) {
        unsigned owner = worker;
        EXPECT_TRUE(owners[port_of[connection]].compare_exchange_strong(owner, 0));
        port_of[connection] = 0;
        ports.release(connection);
        continue;
      }
      // Each connection has its own socket.
      Tuple tuple{.source = {0, 1 + random() % 8},
                  .destination = {0, 99},
                  .source_port = static_cast<std::uint16_t>(connection),
                  .protocol = ip_protocol::kUdp,
                  .ip_version = 4};
      if (ports.translate(connection, tuple, range, [](const Tuple&) { return false; }) != PortBlocks::Refusal::none)
        continue;
      port_of[connection] = tuple.source_port;
      unsigned nobody = 0;
      EXPECT_TRUE(owners[tuple.source_port].compare_exchange_strong(nobody, worker)) << tuple.source_port;
    }
  };
  std::vector<std::thread> threads;
  for (unsigned worker = 1; worker <= kWorkers; ++worker) threads.emplace_back(work, worker);
  for (std::thread& thread : threads) thread.join();
  EXPECT_GT(blocks->usage().released, 0U);
}

/// The same, slowly: sets of connections, and of the intervals in which hosts had blocks.
class Model {
 public:
  struct Socket {
    std::string host;
    std::uint16_t port = 0;
    bool icmp = false;
    auto operator<=>(const Socket&) const = default;
  };
  struct Block {
    std::string host;
    Ipv6Address address;
    std::uint16_t first = 0;
    unsigned worker = 0;
    std::uint64_t from_ns = 0, to_ns = ~std::uint64_t{0};
    std::uint64_t last_used_ns = 0;  // when its last connection ended
  };

  Model(const PortBlockOptions& options, std::size_t addresses) : options_(options), addresses_(addresses) {}

  void add(const BlockEvent& event, unsigned worker) {
    const std::string host = to_string(Ipv4Address{static_cast<std::uint32_t>(event.subscriber.address.low)});
    if (event.kind == BlockEvent::Kind::allocated) {
      for (const Block& other : blocks_) {
        if (other.address != event.address || other.first != event.first_port) continue;
        EXPECT_LE(other.to_ns, event.time_ns) << "one host at a time";
        EXPECT_GE(event.time_ns, other.last_used_ns + options_.hold_s * kSecond) << "held long enough";
      }
      blocks_.push_back({host, event.address, event.first_port, worker, event.time_ns});
      std::set<Ipv6Address> of_host;
      for (const Block* block : blocks_of(host)) of_host.insert(block->address);
      EXPECT_EQ(of_host.size(), 1U) << "paired";
      EXPECT_LE(blocks_of(host).size(), options_.per_host);
      return;
    }
    for (Block& block : blocks_) {
      if (block.address != event.address || block.first != event.first_port || block.to_ns != ~std::uint64_t{0})
        continue;
      EXPECT_EQ(block.host, host);
      EXPECT_EQ(block.worker, worker);
      for (const auto& [key, connection] : connections_) EXPECT_NE(connection.block, &block - blocks_.data());
      block.to_ns = event.time_ns;
      return;
    }
    ADD_FAILURE() << "released, but not allocated";
  }

  void set_time(std::uint64_t now_ns) {
    now_ns_ = now_ns;
    std::erase_if(connections_, [&](const auto& one) {
      // The timer's slots are 2^30 ns.
      return one.second.expires_ns >> 30 < now_ns >> 30 && end(one.second);
    });
  }
  /// A packet of this connection comes: if its time is over, it has ended.
  void look_up(const Socket& socket, const std::string& to) {
    const auto found = connections_.find({socket, to});
    if (found != connections_.end() && found->second.expires_ns <= now_ns_ && end(found->second))
      connections_.erase(found);
  }

  /// Whether a port is there for the socket, before the packet is translated.
  [[nodiscard]] bool can_have(const Socket& socket, const std::string& to, unsigned worker) const {
    if (mapped(socket, worker) || connections_.contains({socket, to})) return true;
    for (const Block* block : blocks_of(socket.host)) {
      if (block->worker == worker && used(*block, socket.icmp) < options_.size) return true;
    }
    const auto held = blocks_of(socket.host);
    if (held.size() >= options_.per_host) return false;
    const std::size_t per_address = (0x10000U - options_.first_port) / options_.size;
    const auto in_use = std::ranges::count_if(blocks_, [&](const Block& block) {
      return block.to_ns == ~std::uint64_t{0} && (held.empty() || block.address == held.front()->address);
    });
    return static_cast<std::size_t>(in_use) < per_address * (held.empty() ? addresses_ : 1);
  }

  void passed(const Socket& socket, const std::string& to, unsigned worker, const Ipv6Address& address,
              std::uint16_t port) {
    const std::optional<Public> before = mapped(socket, worker);
    if (before) {
      EXPECT_EQ(*before, Public(address, port)) << "independent of the endpoint";
    }
    for (const auto& [key, other] : connections_) {
      if (key.first != socket && key.first.icmp == socket.icmp) {
        EXPECT_NE(other.outside, Public(address, port));
      }
    }
    const auto host = who_had(address, port, now_ns_);
    ASSERT_TRUE(host);
    EXPECT_EQ(blocks_[*host].host, socket.host);
    EXPECT_EQ(blocks_[*host].worker, worker);
    connections_[{socket, to}] = {static_cast<std::ptrdiff_t>(*host), worker, {address, port}, now_ns_ + 30 * kSecond};
  }

  /// What the log answers.
  [[nodiscard]] std::optional<std::size_t> who_had(const Ipv6Address& address, std::uint16_t port,
                                                   std::uint64_t when_ns) const {
    std::optional<std::size_t> found;
    for (std::size_t i = 0; i < blocks_.size(); ++i) {
      const Block& block = blocks_[i];
      if (block.address != address || port < block.first || port - block.first >= options_.size) continue;
      if (when_ns < block.from_ns || when_ns >= block.to_ns) continue;
      EXPECT_FALSE(found) << "one answer";
      found = i;
    }
    return found;
  }

 private:
  using Public = std::pair<Ipv6Address, std::uint16_t>;
  struct Live {
    std::ptrdiff_t block = 0;
    unsigned worker = 0;
    Public outside;
    std::uint64_t expires_ns = 0;
  };

  bool end(const Live& connection) {
    Block& block = blocks_[static_cast<std::size_t>(connection.block)];
    block.last_used_ns = std::max(block.last_used_ns, connection.expires_ns);
    return true;
  }
  [[nodiscard]] std::vector<const Block*> blocks_of(const std::string& host) const {
    std::vector<const Block*> found;
    for (const Block& block : blocks_) {
      if (block.host == host && block.to_ns == ~std::uint64_t{0}) found.push_back(&block);
    }
    return found;
  }
  [[nodiscard]] std::optional<Public> mapped(const Socket& socket, unsigned worker) const {
    for (const auto& [key, connection] : connections_) {
      if (key.first == socket && connection.worker == worker) return connection.outside;
    }
    return std::nullopt;
  }
  [[nodiscard]] std::size_t used(const Block& block, bool icmp) const {
    std::set<Public> ports;
    for (const auto& [key, connection] : connections_) {
      if (key.first.icmp == icmp && connection.block == &block - blocks_.data()) ports.insert(connection.outside);
    }
    return ports.size();
  }

  const PortBlockOptions options_;
  const std::size_t addresses_;
  std::uint64_t now_ns_ = 0;
  std::vector<Block> blocks_;
  std::map<std::pair<Socket, std::string>, Live> connections_;
};

/// Workers that share blocks, beside the model.
class WithModel final : public BlockObserver {
 public:
  WithModel(Model& model, const unsigned& worker) : model_(model), worker_(worker) {}
  void tell(const BlockEvent& event) noexcept override { model_.add(event, worker_); }

 private:
  Model& model_;
  const unsigned& worker_;
};

TEST(PortBlocks, AreThoseOfASlowModelUnderRandomTraffic) {
  // In steps of the timer, so that connections end exactly when their time is over.
  constexpr std::uint64_t kTick = std::uint64_t{1} << 30;
  for (const unsigned workers : {1U, 2U, 3U}) {
    std::size_t refused = 0;
    for (std::uint32_t round = 0; round < testing::rounds(15); ++round) {
      std::mt19937 random(round);
      const auto any = [&](std::uint32_t below) { return static_cast<std::uint32_t>(random() % below); };
      const PortBlockOptions options = small(4, static_cast<std::uint16_t>(1 + any(4)), any(60));
      Model model(options, 2);
      unsigned worker = 0;
      const auto blocks = std::make_shared<PortBlocks>(options, round, std::make_unique<WithModel>(model, worker));
      std::vector<std::unique_ptr<TranslatingTable>> tables;
      for (unsigned i = 0; i < workers; ++i)
        tables.push_back(
            std::make_unique<TranslatingTable>(Options{.most_connections = 4096, .port_blocks = options}, blocks));
      for (const auto& table : tables) table->now_ns -= table->now_ns % kTick;
      const NatRange range = to_addresses("192.0.2.1", "192.0.2.2");
      for (int step = 0; step < 2500; ++step) {
        const std::uint64_t pause = (any(1000) == 0 ? any(200) : any(20) == 0 ? 1 : 0) * kTick;
        for (worker = 0; worker < workers; ++worker) {
          tables[worker]->now_ns += pause;
          if (worker == 0) model.set_time(tables[0]->now_ns);
          for (int i = 0; i < 8; ++i) tables[worker]->table.expire(tables[worker]->now_ns);
        }
        const std::string host = "10.1.0." + std::to_string(1 + any(any(3) == 0 ? 6 : 2));
        const Model::Socket socket{host, static_cast<std::uint16_t>(1000 + any(150)), any(4) == 0};
        const unsigned destination = any(3);
        worker = destination % workers;
        const std::string to = "10.2.0." + std::to_string(destination + 1);
        TranslatingTable& table = *tables[worker];
        model.look_up(socket, to);
        const bool can = model.can_have(socket, to, worker);
        const Packet packet = socket.icmp ? icmp_packet({socket.host, to}, 8, 0, socket.port)
                                          : udp_packet({socket.host, to, socket.port});
        const bool passes = table.forward(packet, {.source = range}).has_value();
        ASSERT_EQ(passes, can) << "round " << round << ", step " << step;
        refused += passes ? 0U : 1U;
        if (!passes) continue;
        const Tuple tuple = *inverse_of(table.last.connection->reply);
        model.passed(socket, to, worker, tuple.source, tuple.source_port);
        ASSERT_FALSE(HasFailure()) << "round " << round << ", step " << step;
      }
    }
    EXPECT_GT(refused, 0U);
  }
}

}  // namespace
}  // namespace penstock::conntrack
