// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "nf/firewall/connections_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "base/text_file.h"
#include "function/testing/attached_stage.h"
#include "nf/firewall/firewall.h"
#include "nf/firewall/rules_for_test.h"
#include "packet/parse_core.h"
#include "packet/testing/packet_builder.h"
#include "port/worker_of.h"

namespace penstock::firewall {
namespace {

using penstock::testing::packet;
using penstock::testing::PacketBuilder;

/// Runs of a firewall that lets connections of 10/8 through.
class ConnectionsFile : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = ::testing::TempDir() + "/connections_XXXXXX";
    ASSERT_NE(::mkdtemp(folder_.data()), nullptr);
    path_ = folder_ + "/kept";
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  [[nodiscard]] std::unique_ptr<Firewall> firewall() const {
    auto made = Firewall::build(rules_of("*filter\n:FORWARD DROP [0:0]\n"
                                         "-A FORWARD -m conntrack --ctstate ESTABLISHED -j ACCEPT\n"
                                         "-A FORWARD -s 10.0.0.0/8 -m conntrack --ctstate NEW -j ACCEPT\nCOMMIT\n"),
                                classify::Engine::bitvector, {.connections_file = path_});
    EXPECT_TRUE(made) << to_string(made.error());
    return std::move(*made);
  }
  static bool passes(function::testing::AttachedStage& stage, const PacketBuilder& builder) {
    auto frame = builder.bytes();
    PacketDescriptor descriptor;
    descriptor.length = descriptor.wire_length = static_cast<std::uint32_t>(frame.size());
    descriptor.timestamp_ns = 1'700'000'000'000'000'000;
    PacketView view{frame.data(), &descriptor};
    parse(view);
    stage.process({&view, 1});
    return descriptor.verdict.alive();
  }
  /// A run with a query, whose reply has not come yet.
  void run_once() const {
    const auto first = firewall();
    ASSERT_TRUE(first->begin_run());
    {
      function::testing::AttachedStage stage(*first);
      EXPECT_TRUE(passes(stage, query()));
    }
    first->end_run();
  }
  /// Whether the next run knows its connection.
  [[nodiscard]] bool next_run_knows_it() const {
    const auto next = firewall();
    EXPECT_TRUE(next->begin_run());
    function::testing::AttachedStage stage(*next);
    return passes(stage, answer());
  }
  void write(const std::string& text) const { ASSERT_TRUE(write_text_file(path_, text, FileAccess::owner)); }
  [[nodiscard]] std::string text() const { return read_text_file(path_).value_or(""); }

  static PacketBuilder query() { return packet().eth().ipv4("10.0.0.1", "192.0.2.7").udp(4000, 53).payload("?"); }
  static PacketBuilder answer() { return packet().eth().ipv4("192.0.2.7", "10.0.0.1").udp(53, 4000).payload("!"); }

  std::string folder_, path_;
};

TEST_F(ConnectionsFile, KeepsConnectionsForTheNextRun) {
  EXPECT_FALSE(next_run_knows_it());
  run_once();
  EXPECT_TRUE(next_run_knows_it());
  struct stat status {};
  ASSERT_EQ(::stat(path_.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600U);
}

/// A run of a gateway with firewalls at these hooks, the first of which has the file.
class GatewayRun {
 public:
  GatewayRun(const std::string& path, const std::vector<Hook>& hooks) {
    const char* const rules =
        "*filter\n:FORWARD ACCEPT [0:0]\nCOMMIT\n*nat\n:PREROUTING ACCEPT [0:0]\n:POSTROUTING ACCEPT [0:0]\n"
        "-A POSTROUTING -s 10.0.0.0/8 -p udp -j SNAT --to-source 203.0.113.5:5000\nCOMMIT\n";
    for (const Hook hook : hooks) {
      ReadOptions options;
      options.hook = hook;
      classify::Ruleset filters = rules_of(rules, options);
      options.translates = true;
      auto made = Firewall::build(
          std::move(filters), classify::Engine::bitvector,
          {.connections_file = firewalls_.empty() ? path : "", .nat = NatRules{hook, rules_of(rules, options), {}}});
      EXPECT_TRUE(made) << to_string(made.error());
      firewalls_.push_back(std::move(*made));
    }
    EXPECT_TRUE(firewalls_.front()->begin_run());
    connections_ = function::make_connections(*firewalls_.front(), 64);
    for (const auto& firewall : firewalls_) {
      stages_.push_back(firewall->make_cpu_stage());
      stages_.back()->set_connections(*connections_);
    }
    connections_->pass_boundary();
  }
  ~GatewayRun() { firewalls_.front()->end_run(); }
  GatewayRun(const GatewayRun&) = delete;
  GatewayRun& operator=(const GatewayRun&) = delete;

  /// "SOURCE > DESTINATION", or "" if it is dropped.
  std::string pass(const PacketBuilder& builder) {
    auto frame = builder.bytes();
    PacketDescriptor descriptor;
    descriptor.length = descriptor.wire_length = static_cast<std::uint32_t>(frame.size());
    descriptor.timestamp_ns = 1'700'000'000'000'000'000;
    descriptor.sequence = sequence_++;
    PacketView view{frame.data(), &descriptor};
    parse(view);
    for (const auto& stage : stages_) {
      if (descriptor.verdict.alive()) stage->process({&view, 1});
    }
    connections_->settle();
    if (!descriptor.verdict.alive()) return "";
    return to_string(Ipv4Address{view.ipv4().source.value()}) + " > " +
           to_string(Ipv4Address{view.ipv4().destination.value()});
  }

 private:
  std::vector<std::unique_ptr<Firewall>> firewalls_;
  std::unique_ptr<conntrack::Connections> connections_;
  std::vector<std::unique_ptr<function::CpuStage>> stages_;
  std::uint32_t sequence_ = 0;
};

TEST_F(ConnectionsFile, KeepsTranslations) {
  const std::vector<Hook> both{Hook::prerouting, Hook::postrouting};
  const auto public_answer = packet().eth().ipv4("192.0.2.7", "203.0.113.5").udp(53, 5000).payload("!");
  EXPECT_EQ(GatewayRun(path_, both).pass(query()), "203.0.113.5 > 192.0.2.7");
  {
    GatewayRun next(path_, both);
    EXPECT_EQ(next.pass(public_answer), "192.0.2.7 > 10.0.0.1");
    EXPECT_EQ(next.pass(query()), "203.0.113.5 > 192.0.2.7");
    EXPECT_EQ(next.pass(packet().eth().ipv4("10.0.0.2", "192.0.2.7").udp(4000, 53).payload("?")), "")
        << "the port is in use again";
  }
  // Replies would not be translated back.
  EXPECT_EQ(GatewayRun(path_, {Hook::prerouting}).pass(public_answer), "192.0.2.7 > 203.0.113.5");
}

TEST_F(ConnectionsFile, OfADamagedFileNothingIsUsedAndTheRunBegins) {
  run_once();
  write(text() + "protocol=17\n");
  EXPECT_FALSE(next_run_knows_it());
  run_once();
  EXPECT_TRUE(next_run_knows_it()) << "the next run writes a whole one";
}

TEST_F(ConnectionsFile, IsNotUsedIfOthersCouldHaveWrittenIt) {
  run_once();
  ASSERT_EQ(::chmod(path_.c_str(), 0660), 0);
  EXPECT_FALSE(next_run_knows_it());
  ASSERT_EQ(::chmod(path_.c_str(), 0600), 0);
  EXPECT_TRUE(next_run_knows_it());
}

TEST_F(ConnectionsFile, AFileOfAnotherKindIsNeverOverwritten) {
  write("root:x:0:0:root:/root:/bin/sh\n");
  const auto first = firewall();
  const auto begun = first->begin_run();
  ASSERT_FALSE(begun);
  EXPECT_EQ(begun.error().front().message, "not overwritten: an existing file that is not a file of saved connections");
  EXPECT_FALSE(first->check().empty());
  first->end_run();
  EXPECT_EQ(text(), "root:x:0:0:root:/root:/bin/sh\n");
  std::filesystem::remove(path_);
  std::filesystem::create_directory(path_);
  EXPECT_FALSE(first->begin_run());
}

TEST(WorkerOfAConnection, IsTheOneToWhichItsPacketsCome) {
  constexpr unsigned kWorkers = 7;
  const auto v4 = [](const char* from, const char* to) { return packet().eth().ipv4(from, to); };
  const auto v6 = [](const char* from, const char* to) { return packet().eth().ipv6(from, to); };
  std::vector<PacketBuilder> packets;
  for (std::uint16_t port = 1; port < 40; ++port) {
    packets.push_back(v4("10.0.0.1", "192.0.2.7").tcp(port, 443, 2));
    packets.push_back(v6("2001:db8::1", "2001:db8::2").udp(port, 53).payload("1234"));
    packets.push_back(v4("10.0.0.1", "192.0.2.7").udp(port, 4789).payload("12345678"));
    packets.push_back(v4("10.0.0.1", "192.0.2.7")
                          .protocol(132)
                          .raw({0, static_cast<std::uint8_t>(port), 0, 9, 0, 0, 0, 0, 0, 0, 0, 0}));
  }
  for (int host = 1; host < 40; ++host) {
    const std::string from = "10.0.0." + std::to_string(host), from6 = "2001:db8::" + std::to_string(host);
    packets.push_back(packet().eth().ipv4(from, "192.0.2.7").icmp(8, 0).payload("12345678"));
    packets.push_back(packet().eth().ipv4(from, "192.0.2.7").protocol(50).payload("12345678"));
    packets.push_back(packet().eth().ipv4(from, "192.0.2.7").protocol(47).raw({0, 0, 8, 0, 0x45, 0, 0, 0}));
    packets.push_back(packet().eth().ipv6(from6, "2001:db8::ffff").icmp(128, 0).payload("12345678"));
  }
  std::array<int, kWorkers> seen{};
  for (const PacketBuilder& builder : packets) {
    auto frame = builder.bytes();
    PacketDescriptor descriptor;
    descriptor.length = descriptor.wire_length = static_cast<std::uint32_t>(frame.size());
    const PacketView view{frame.data(), &descriptor};
    parse(view);
    conntrack::Table table({.most_connections = 1, .most_fragments = 1, .checksum = false});
    const conntrack::Tracked tracked = table.track(view, 1);
    ASSERT_NE(tracked.connection, nullptr) << int{view.layout().transport};
    const unsigned worker = worker_of(tracked.connection->original, kWorkers);
    EXPECT_EQ(worker, port::worker_of(frame, descriptor.wire_length, LinkType::ethernet, kWorkers))
        << int{view.layout().transport};
    ++seen[worker];
  }
  for (const int count : seen) EXPECT_GT(count, 0);
}

}  // namespace
}  // namespace penstock::firewall
