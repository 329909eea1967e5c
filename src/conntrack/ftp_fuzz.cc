// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Any lines of a client and a server through a control connection with the helper of FTP. A host gets the bytes of the
// other one numbered without gaps, with correct checksums; only announcements of translated connections change, and
// read then like the address that the other host sees. At most one connection is expected.
//
// Input: a byte of settings; then for each segment a byte of what is done and its length, and its payload.

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include "base/testing/fuzz_check.h"
#include "conntrack/ftp.h"
#include "conntrack/testing/translating_table.h"

using namespace penstock;
using namespace penstock::conntrack;

namespace {

void require(bool holds) { testing::check(holds); }

struct Host {
  Ends ends;
  std::uint32_t next, got;  // the next byte that it sends, and that it gets
};

struct Session {
  Session(const Options& options, bool v6, NatRules of_rules) : table(options), rules(of_rules) {
    Host &client = hosts[0], &server = hosts[1];
    client.ends = v6 ? Ends{"2001:db8::1", "2001:db8:2::1", 3000, 21} : Ends{"10.1.0.1", "10.2.0.1", 3000, 21};
    const std::optional<Packet> syn = table.forward(
        tcp_packet(client.ends, {.flags = TcpHeader::kSyn, .sequence = client.next - 1, .window = 60'000}), rules);
    require(syn.has_value());
    ParsedPacket parsed(*syn);
    Transport transport;
    require(read_transport(parsed.view(), transport));
    const auto text = [&](const Ipv6Address& address) {
      return v6 ? to_string(address) : to_string(Ipv4Address{static_cast<std::uint32_t>(address.low)});
    };
    server.ends = {text(transport.tuple.destination), text(transport.tuple.source), transport.tuple.destination_port,
                   transport.tuple.source_port};
    require(table
                .forward(tcp_packet(server.ends, {.flags = TcpHeader::kSyn | TcpHeader::kAck,
                                                  .sequence = server.next - 1,
                                                  .ack = server.got,
                                                  .window = 60'000}))
                .has_value());
    say(1, "220\r\n", true);
    say(0, "USER x\r\n", true);
  }

  void say(unsigned from_whom, const std::string& text, bool passes = false) {
    Host &from = hosts[from_whom], &to = hosts[1 - from_whom];
    const auto direction = static_cast<Direction>(from_whom);
    const std::optional<Packet> output =
        table.forward(tcp_packet(from.ends, {.sequence = from.next, .ack = from.got, .window = 60'000, .text = text}));
    require(table.table.counters().expectations <= 1);
    if (passes) require(output.has_value());
    if (!output) return;
    ParsedPacket parsed(*output);
    Transport transport;
    require(read_transport(parsed.view(), transport) && !find_error(parsed.view(), transport, true));
    const PacketLayout& layout = parsed.descriptor.layout;
    require(layout.end == output->size());
    const std::string got(output->begin() + layout.payload_offset, output->begin() + layout.end);
    const TcpHeader& tcp = parsed.view().tcp();
    require(tcp.sequence.value() == to.got && tcp.acknowledgment.value() == to.next);
    require(got.size() <= text.size() + kMostFtpGrowth);
    if (got != text) {
      require(table.last.connection->translated());
      const auto read = [&](const std::string& line) {
        return read_ftp({reinterpret_cast<const std::uint8_t*>(line.data()), line.size()}, direction,
                        layout.network == NetworkLayer::ipv4 ? 4 : 6, transport.tuple.source);
      };
      const FtpAnnouncement before = read(text), after = read(got);
      require(before.kind == FtpAnnouncement::Kind::found && after.kind == before.kind);
      require(after.command == before.command && after.offset == before.offset && after.port == before.port);
      require(after.address == transport.tuple.source);
      require(text.substr(0, before.offset) == got.substr(0, after.offset));
      require(text.substr(before.offset + before.length) == got.substr(after.offset + after.length));
    }
    from.next += static_cast<std::uint32_t>(text.size());
    to.got += static_cast<std::uint32_t>(got.size());
  }

  TranslatingTable table;
  NatRules rules;
  std::array<Host, 2> hosts{Host{{}, 1'000, 0xfffffff0}, Host{{}, 0xfffffff0, 1'000}};
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  Options options;
  options.most_connections = 8;
  options.most_fragments = 8;
  options.most_expectations = (data[0] & 8) != 0 ? 0 : 1;
  options.ftp.offered = true;
  options.ftp.ports = {21};
  options.seed = 1;
  const bool v6 = (data[0] & 1) != 0;
  NatRules rules;
  if ((data[0] & 2) != 0) rules.source = to_address(v6 ? "2001:db8:1::1" : "198.51.100.201");
  if ((data[0] & 4) != 0) rules.destination = to_address(v6 ? "2001:db8:3::1" : "10.3.0.1");
  Session session(options, v6, rules);
  for (std::size_t at = 1; at + 2 <= size;) {
    const unsigned from = data[at] & 1;
    const std::size_t length = std::min<std::size_t>(data[at + 1], size - at - 2);
    std::string text(reinterpret_cast<const char*>(data + at + 2), length);
    at += 2 + length;
    if (text.empty()) continue;
    session.say(from, text);
  }
  return 0;
}
