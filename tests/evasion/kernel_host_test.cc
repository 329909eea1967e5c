// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The kernel host accepts valid packets, and no invalid ones. Skipped if no kernel host can be created.

#include "evasion/kernel_host.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "evasion/player.h"

namespace penstock::evasion {
namespace {

class Judge : public ::testing::Test {
 protected:
  void SetUp() override {
    allow_network_namespaces();
    auto made = KernelHost::make();
    if (!made) GTEST_SKIP() << "no host in a network namespace here: " << to_string(made.error());
    host_ = std::move(*made);
  }

  bool reads_datagram(bool v6, IpFields ip, Bytes datagram_of(const Endpoint&, const Endpoint&)) {
    if (v6 && !host_->has_ipv6()) return false;
    const Endpoint from{KernelHost::attacker(v6, 5), 4000}, to{KernelHost::address(v6), KernelHost::kUdpPorts[0]};
    ip.protocol = 17;
    host_->deliver(ip_packet(from.address, to.address, ip, datagram_of(from, to)));
    const auto datagram = host_->read_datagram(to.port, v6);
    return datagram && datagram->text == "hello" && datagram->from == from;
  }

  std::unique_ptr<KernelHost> host_;
};

const Bytes kHello = {'h', 'e', 'l', 'l', 'o'};

TEST_F(Judge, ReadsAValidDatagram) {
  const auto right = [](const Endpoint& from, const Endpoint& to) { return udp_datagram(from, to, kHello); };
  EXPECT_TRUE(reads_datagram(false, {}, right));
  EXPECT_EQ(reads_datagram(true, {}, right), host_->has_ipv6());
}

TEST_F(Judge, ReadsNoDatagramWithAWrongChecksum) {
  const auto right = [](const Endpoint& from, const Endpoint& to) { return udp_datagram(from, to, kHello); };
  const auto wrong = [](const Endpoint& from, const Endpoint& to) {
    Bytes datagram = udp_datagram(from, to, kHello);
    spoil_checksum(17, datagram);
    return datagram;
  };
  EXPECT_FALSE(reads_datagram(false, {}, wrong));
  EXPECT_FALSE(reads_datagram(false, {.wrong_checksum = true}, right));
}

/// Plays a handshake and one data segment, which `change` modifies.
Transcript conversation(KernelHost& host, HostRole role, void (*change)(Packet&)) {
  static std::uint32_t attacker = 100;
  Script script;
  script.role = role;
  script.host_port = role == HostRole::client ? 0 : 80;
  script.signature_text = "hello";
  script.connections.push_back({.isn = 0xfffffffe, .stream = kHello});
  const auto add = [&](std::int64_t at, std::uint8_t flags, const Bytes& payload, bool handshake) {
    Step step;
    step.packet.at = at;
    step.packet.flags = flags;
    step.packet.payload = payload;
    step.packet.handshake_options = handshake;
    if (handshake && role == HostRole::server) step.packet.acknowledges = Acknowledges::zero;
    if (!payload.empty()) change(step.packet);
    script.steps.push_back(step);
  };
  if (role == HostRole::client) {
    script.steps.push_back({.kind = Step::Kind::host_connects});
    add(-1, tcp::kSyn | tcp::kAck, {}, true);
  } else {
    add(-1, tcp::kSyn, {}, true);
    add(0, tcp::kAck, {}, false);
  }
  add(0, tcp::kAck | tcp::kPsh, kHello, false);
  return play(script, host, attacker++, 1'700'000'000'000'000'000);
}

TEST_F(Judge, ReadsAValidSegment) {
  for (const HostRole role : {HostRole::server, HostRole::client}) {
    const Transcript transcript = conversation(*host_, role, [](Packet&) {});
    EXPECT_TRUE(transcript.read_signature);
    EXPECT_EQ(transcript.streams, std::vector<std::string>{"hello"});
  }
}

TEST_F(Judge, ReadsNoInvalidSegment) {
  const std::pair<const char*, void (*)(Packet&)> wrongs[] = {
      {"checksum", [](Packet& packet) { packet.wrong_checksum = true; }},
      {"IP checksum", [](Packet& packet) { packet.wrong_ip_checksum = true; }},
      {"dies on its way", [](Packet& packet) { packet.dies = true; }},
      {"outside of the window", [](Packet& packet) { packet.at += 1 << 24; }},
      {"old timestamp", [](Packet& packet) { packet.timestamp_shift = -100'000; }},
      {"acknowledges what was never sent", [](Packet& packet) { packet.ack_shift = 1 << 20; }},
      {"no ACK", [](Packet& packet) { packet.flags = tcp::kPsh; }},
  };
  for (const auto& [name, wrong] : wrongs) {
    EXPECT_FALSE(conversation(*host_, HostRole::server, wrong).read_signature) << name;
  }
}

TEST_F(Judge, ReassemblesFragments) {
  const Transcript transcript = conversation(*host_, HostRole::server, [](Packet& packet) {
    packet.fragments = {{.begin = 16, .end = Fragment::kToEnd, .more = false}, {.begin = 0, .end = 16, .more = true}};
  });
  EXPECT_TRUE(transcript.read_signature);
}

TEST_F(Judge, HasEachProfile) {
  for (std::size_t i = 0; i < kHostProfiles; ++i) {
    auto other = KernelHost::make(static_cast<HostProfile>(i));
    ASSERT_TRUE(other) << to_string(other.error());
    for (const HostRole role : {HostRole::server, HostRole::client}) {
      // Both hosts of the thread, alternately.
      EXPECT_TRUE(conversation(**other, role, [](Packet&) {}).read_signature) << name_of(static_cast<HostProfile>(i));
      EXPECT_TRUE(conversation(*host_, role, [](Packet&) {}).read_signature);
    }
  }
}

}  // namespace
}  // namespace penstock::evasion
