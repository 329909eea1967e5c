// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Control connections of FTP, as they come to a firewall that translates their clients' address to a longer one. Some
// announcements are in two segments.

#pragma once

#include <fmt/format.h>

#include <string>
#include <utility>
#include <vector>

#include "conntrack/testing/packets.h"
#include "function/burst.h"
#include "property/access_traffic.h"

namespace penstock::property {

class FtpPackets {
 public:
  explicit FtpPackets(RandomPackets& random) : random_(random) {}

  /// So many conversations at a time that no answer comes in the burst of the packet that begins its connection.
  std::vector<Packet> operator()(std::size_t count) {
    constexpr std::size_t kAtATime = function::kBurst + 12;
    std::vector<Conversation> conversations;
    for (std::uint16_t i = 0; i < kAtATime; ++i) conversations.emplace_back(static_cast<std::uint16_t>(10'000 + i));
    while (packets_.size() < count) {
      for (Conversation& conversation : conversations) step(conversation);
    }
    return std::move(packets_);
  }

 private:
  static constexpr std::uint32_t kGrowth = 6;  // from 10.1.0.1 to 198.51.100.201

  struct Conversation {
    explicit Conversation(std::uint16_t port)
        : client{"10.1.0.1", "192.0.2.7", port, 21}, server{"192.0.2.7", "198.51.100.201", 21, port} {}

    conntrack::Ends client, server;
    std::uint32_t sent = 1000, got = 1000;  // the client's next byte, as both number it
    std::uint32_t answered = 5000;          // the server's
    unsigned steps = 0;
  };

  void step(Conversation& of) {
    switch (of.steps++) {
      case 0: return add(of.client, {.flags = TcpHeader::kSyn, .sequence = of.sent - 1}, 1);
      case 1:
        return add(of.server, {.flags = TcpHeader::kSyn | TcpHeader::kAck, .sequence = of.answered - 1, .ack = of.got},
                   0);
      case 2: return say(of, "USER x\r\n", 0);
      default: break;
    }
    if (of.steps % 2 == 0) return answer(of);
    const unsigned port = next_port_++;  // of two that are the same, one would be translated to another at random
    if (random_.one_in(4)) {
      add(of.client, {.sequence = of.sent, .ack = of.answered, .text = "PORT 10,1"}, 1);
    } else if (random_.one_in(2)) {
      say(of, fmt::format("PORT 10,1,0,1,{},{}\r\n", port >> 8, port & 0xff), kGrowth);
    } else {
      say(of, fmt::format("EPRT |1|10.1.0.1|{}|\r\n", port), kGrowth);
    }
  }
  void say(Conversation& of, const std::string& line, std::uint32_t growth) {
    add(of.client, {.sequence = of.sent, .ack = of.answered, .text = line}, 1);
    of.sent += static_cast<std::uint32_t>(line.size());
    of.got += static_cast<std::uint32_t>(line.size()) + growth;
  }
  /// The server acknowledges what it has got, and says that it has got some of it.
  void answer(Conversation& of) {
    conntrack::Packet sack{1, 1, 5, 10, 0, 0, 0, 0, 0, 0, 0, 0};
    conntrack::put_be32(sack, 4, of.got - 10);
    conntrack::put_be32(sack, 8, of.got - 5);
    const std::string line = random_.one_in(2) ? "200 ok\r\n" : "";
    add(of.server,
        {.sequence = of.answered,
         .ack = of.got,
         .options = random_.one_in(2) ? sack : conntrack::Packet(),
         .text = line},
        0);
    of.answered += static_cast<std::uint32_t>(line.size());
  }
  void add(const conntrack::Ends& ends, conntrack::TcpFields fields, PortIndex out) {
    const conntrack::Packet ip = conntrack::tcp_packet(ends, std::move(fields));
    Bytes frame{2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0};
    frame.insert(frame.end(), ip.begin(), ip.end());
    constexpr std::size_t kShortest = 60;
    if (frame.size() < kShortest) frame.resize(kShortest);
    Packet packet = whole(std::move(frame));
    packet.descriptor.timestamp_ns = now_ns_ += 1'000'000;
    packet.descriptor.in_port = static_cast<PortIndex>(1 - out);
    packet.descriptor.verdict = Verdict::forward(out);
    packets_.push_back(std::move(packet));
  }

  RandomPackets& random_;
  unsigned next_port_ = 2000;
  std::uint64_t now_ns_ = 1'700'000'000'000'000'000;
  std::vector<Packet> packets_;
};

}  // namespace penstock::property
