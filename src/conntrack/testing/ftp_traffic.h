// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// A client and a server of FTP on both sides of a router, for tests: each numbers its bytes, and acknowledges what has
// come to it, as it sees them.

#pragma once

#include <array>
#include <cstdio>
#include <functional>
#include <optional>
#include <string>
#include <utility>

#include "conntrack/testing/kernel_comparison.h"
#include "conntrack/testing/nat_kernel.h"

namespace penstock::conntrack {

/// Source and destination of a packet.
inline Ends ends_in(const Packet& packet) {
  ParsedPacket parsed(packet);
  Transport transport;
  if (!read_transport(parsed.view(), transport)) return {};
  const auto address = [&](const Ipv6Address& of) {
    return transport.tuple.ip_version == 4 ? to_string(Ipv4Address{static_cast<std::uint32_t>(of.low)}) : to_string(of);
  };
  return {address(transport.tuple.source), address(transport.tuple.destination), transport.tuple.source_port,
          transport.tuple.destination_port};
}

inline std::string text_in(const Packet& packet) {
  const PacketLayout layout = ParsedPacket(packet).descriptor.layout;
  return {packet.begin() + layout.payload_offset, packet.begin() + layout.end};
}

/// Where a line says that a data connection goes; nothing if it does not say so. Not for lines with mistakes.
inline std::optional<std::pair<std::string, std::uint16_t>> announced_in(const std::string& line) {
  std::array<unsigned, 6> n{};
  std::array<char, 64> address{};
  for (const char* const form : {"PORT %u,%u,%u,%u,%u,%u", "227 Entering Passive Mode (%u,%u,%u,%u,%u,%u"}) {
    if (std::sscanf(line.c_str(), form, &n[0], &n[1], &n[2], &n[3], &n[4], &n[5]) == 6) {
      return std::pair{fmt::format("{}.{}.{}.{}", n[0], n[1], n[2], n[3]),
                       static_cast<std::uint16_t>(n[4] << 8 | n[5])};
    }
  }
  if (std::sscanf(line.c_str(), "EPRT |%u|%60[^|]|%u|", &n[0], address.data(), &n[1]) == 3)
    return std::pair{std::string(address.data()), static_cast<std::uint16_t>(n[1])};
  if (std::sscanf(line.c_str(), "229 Entering Extended Passive Mode (|||%u|", &n[0]) == 1)
    return std::pair{std::string(), static_cast<std::uint16_t>(n[0])};
  return std::nullopt;
}

/// Sends a packet from a side. Returns what leaves the router.
using Sender = std::function<std::optional<NatKernel::Output>(Side, const Packet&)>;

class FtpSession {
 public:
  /// `to_server`: the connection as the client sees it.
  FtpSession(Sender send, Side client, Ends to_server, std::uint32_t first_sequence)
      : send_(std::move(send)),
        hosts_{Host{client, std::move(to_server), first_sequence, 0},
               Host{client == Side::inside ? Side::outside : Side::inside, {}, 50'000, 0}} {}

  /// The handshake.
  bool open() {
    Host &client = hosts_[0], &server = hosts_[1];
    const Packet options{4, 2, 1, 1, 3, 3, 7, 1};  // SACK, window scale
    const auto syn =
        send_(client.side,
              tcp_packet(client.ends,
                         {.flags = TcpHeader::kSyn, .sequence = client.next, .window = 60'000, .options = options}));
    if (!syn) return false;
    ++client.next;
    server.ends = ends_in(syn->packet).reversed();
    server.got = ParsedPacket(syn->packet).view().tcp().sequence.value() + 1;
    const std::uint8_t flags = TcpHeader::kSyn | TcpHeader::kAck;
    const auto answer = send_(
        server.side,
        tcp_packet(server.ends,
                   {.flags = flags, .sequence = server.next, .ack = server.got, .window = 60'000, .options = options}));
    if (!answer) return false;
    ++server.next;
    client.got = ParsedPacket(answer->packet).view().tcp().sequence.value() + 1;
    return acknowledge(true);
  }

  /// Returns the payload as the other one gets it. What is lost on the way is as if it had never been sent. `sack`:
  /// with a block, of bytes that have come.
  std::optional<std::string> say(bool client, const std::string& text, bool sack = false, bool again = false) {
    Host &from = hosts_[client ? 0 : 1], &to = hosts_[client ? 1 : 0];
    const std::uint32_t sequence = again ? from.before : from.next;
    const auto output = send_(from.side, tcp_packet(from.ends, {.sequence = sequence,
                                                                .ack = from.got,
                                                                .options = sack ? sack_option(from) : Packet(),
                                                                .text = text}));
    if (!output) return std::nullopt;
    from.before = sequence;
    from.next = sequence + static_cast<std::uint32_t>(text.size());
    const std::string got = text_in(output->packet);
    const std::uint32_t begin = ParsedPacket(output->packet).view().tcp().sequence.value();
    EXPECT_EQ(begin, again ? to.got_before : to.got) << "not where the last segment ended";
    to.got_before = begin;
    to.got = begin + static_cast<std::uint32_t>(got.size());
    return got;
  }
  /// A segment without payload.
  bool acknowledge(bool client, std::uint8_t more_flags = 0, bool sack = false) {
    Host& from = hosts_[client ? 0 : 1];
    const auto output =
        send_(from.side, tcp_packet(from.ends, {.flags = static_cast<std::uint8_t>(TcpHeader::kAck | more_flags),
                                                .sequence = from.next,
                                                .ack = from.got,
                                                .options = sack ? sack_option(from) : Packet()}));
    if (!output) return false;
    const TcpHeader& tcp = ParsedPacket(output->packet).view().tcp();
    const Host& to = hosts_[client ? 1 : 0];
    EXPECT_EQ(tcp.acknowledgment.value(), to.next) << "not what has been sent";
    EXPECT_EQ(tcp.sequence.value(), to.got);
    return true;
  }
  /// The first segment of a data connection to where `line`, as it has come to this host, says.
  bool connect(bool client, const std::string& line, std::uint16_t from_port, bool answer = true) {
    const auto where = announced_in(line);
    if (!where) return false;
    const Host& from = hosts_[client ? 0 : 1];
    const Ends ends{from.ends.source, where->first.empty() ? from.ends.destination : where->first, from_port,
                    where->second};
    const auto syn = send_(from.side, tcp_packet(ends, {.flags = TcpHeader::kSyn, .sequence = 9'000}));
    if (!syn) return false;
    if (!answer) return true;
    const std::uint8_t flags = TcpHeader::kSyn | TcpHeader::kAck;
    const Ends back = ends_in(syn->packet).reversed();
    return send_(syn->side, tcp_packet(back, {.flags = flags, .sequence = 300, .ack = 9'001})) &&
           send_(from.side, tcp_packet(ends, {.sequence = 9'001, .ack = 301})) &&
           send_(from.side, tcp_packet(ends, {.sequence = 9'001, .ack = 301, .payload = 30}));
  }
  [[nodiscard]] const std::string& address_of(bool client) const { return hosts_[client ? 0 : 1].ends.source; }
  [[nodiscard]] bool is_v6() const { return hosts_[0].ends.is_v6(); }

 private:
  struct Host {
    Side side;
    Ends ends;
    std::uint32_t next;  // of its next byte
    std::uint32_t got;   // after the last byte that has come
    std::uint32_t before = 0, got_before = 0;
  };
  static Packet sack_option(const Host& host) {
    Packet option{1, 1, 5, 10, 0, 0, 0, 0, 0, 0, 0, 0};
    put_be32(option, 4, host.got - 40);
    put_be32(option, 8, host.got - 20);
    return option;
  }

  Sender send_;
  std::array<Host, 2> hosts_;  // client, server
};

}  // namespace penstock::conntrack
