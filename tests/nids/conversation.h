// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// A TCP connection that a test writes segment by segment, as an attacker would: at any position of the stream, with any
// flags, TTL, checksum and urgent pointer.

#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "nids/scanner.h"
#include "packet/testing/packet_builder.h"
#include "packet/transport.h"

namespace penstock::nids::test {

using penstock::testing::Bytes;

struct Segment {
  bool to_server = true;
  std::uint32_t at = 0;  // position of the first byte in its direction's stream; 0 is the byte after the SYN
  std::string_view payload{};
  std::uint8_t flags = TcpHeader::kAck | TcpHeader::kPsh;
  std::uint8_t ttl = 64;
  std::uint32_t acked = 0xffffffff;  // position in the other direction's stream; default: everything that was sent
                                     // there
  std::uint16_t urgent = 0;
  bool wrong_checksum = false;
  Bytes options{};
};

/// Sends frames from 10.0.0.1:4000 to 10.0.0.2:80 through a scanner, one millisecond apart.
class Conversation {
 public:
  explicit Conversation(Scanner& scanner, std::uint16_t client_port = 4000)
      : scanner_(scanner), client_port_(client_port) {}

  void handshake(const Bytes& options = {}) {
    send({.at = 0xffffffff, .flags = TcpHeader::kSyn, .acked = 0, .options = options});
    send({.to_server = false,
          .at = 0xffffffff,
          .flags = TcpHeader::kSyn | TcpHeader::kAck,
          .acked = 0,
          .options = options});
    send({.flags = TcpHeader::kAck, .acked = 0});
  }

  void send(const Segment& segment) { scanner_.frame(frame(segment), now_ns_ += 1'000'000); }

  /// The other side acknowledges all bytes up to `up_to`.
  void acknowledge(bool by_server, std::uint32_t up_to) {
    send({.to_server = !by_server, .at = sent_[by_server ? 1 : 0], .flags = TcpHeader::kAck, .acked = up_to});
  }

  /// Both sides send FINs and acknowledge everything.
  void close() {
    send({.at = sent_[0], .flags = TcpHeader::kFin | TcpHeader::kAck});
    send({.to_server = false, .at = sent_[1], .flags = TcpHeader::kFin | TcpHeader::kAck, .acked = sent_[0] + 1});
    send({.at = sent_[0] + 1, .flags = TcpHeader::kAck, .acked = sent_[1] + 1});
  }

 private:
  Bytes frame(const Segment& segment) {
    const unsigned way = segment.to_server ? 0 : 1;
    const std::uint16_t client = client_port_, server = 80;
    Bytes b = penstock::testing::packet()
                  .eth()
                  .ipv4(way == 0 ? "10.0.0.1" : "10.0.0.2", way == 0 ? "10.0.0.2" : "10.0.0.1", segment.ttl)
                  .tcp(way == 0 ? client : server, way == 0 ? server : client, segment.flags, segment.options)
                  .payload(segment.payload)
                  .bytes();
    const std::uint32_t acked = segment.acked == 0xffffffff ? sent_[1 - way] : segment.acked;
    constexpr std::size_t kIp = 14, kTcp = 34;
    put32(b, kTcp + 4, kFirst[way] + segment.at);
    put32(b, kTcp + 8, (segment.flags & TcpHeader::kAck) != 0 ? kFirst[1 - way] + acked : 0);
    put16(b, kTcp + 18, segment.urgent);
    put16(b, kTcp + 16, 0);
    std::uint64_t pseudo = ip_protocol::kTcp + (b.size() - kTcp);
    for (std::size_t i = kIp + 12; i < kTcp; i += 2) pseudo += static_cast<std::uint64_t>(b[i]) << 8 | b[i + 1];
    put16(b, kTcp + 16, penstock::testing::slow_checksum(b, kTcp, b.size(), pseudo) ^ (segment.wrong_checksum ? 1 : 0));
    const auto end = static_cast<std::uint32_t>(segment.at + segment.payload.size());
    if (segment.at != 0xffffffff && end > sent_[way]) sent_[way] = end;
    return b;
  }
  static void put16(Bytes& b, std::size_t at, std::uint32_t value) {
    b[at] = static_cast<std::uint8_t>(value >> 8);
    b[at + 1] = static_cast<std::uint8_t>(value);
  }
  static void put32(Bytes& b, std::size_t at, std::uint32_t value) {
    put16(b, at, value >> 16);
    put16(b, at + 2, value);
  }

  static constexpr std::uint32_t kFirst[2] = {0xfffffff0, 7};  // the client's sequence numbers soon wrap around
  Scanner& scanner_;
  std::uint16_t client_port_;
  std::uint64_t now_ns_ = 1'700'000'000'000'000'000;
  std::uint32_t sent_[2] = {0, 0};
};

}  // namespace penstock::nids::test
