// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Floods of packets that begin connections, while established connections talk. What the established ones send must
// pass, as packets of known connections and to the last one; the memory must stay what the limit of connections says;
// and each packet of the flood gets the answer that the manual gives, and is counted.

#include <fcntl.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <bit>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "base/testing/rounds.h"
#include "program/program_for_test.h"

namespace penstock {
namespace {

using testing::rounds;

constexpr std::uint32_t kBegin = 1'764'000'000;
constexpr std::uint8_t kTcp = 6, kUdp = 17, kFragmentHeader = 44;
constexpr std::uint8_t kSyn = 2, kAck = 16;
constexpr std::uint16_t kServerPort = 7000;

/// An address of either family by its number within the network: 10.N (clients), 172.16.N (attackers), 203.0.113.N
/// (servers), …; the same as the last 32 bits of IPv6.
struct Address {
  std::uint32_t number = 0;
  bool v6 = false;

  [[nodiscard]] std::size_t size() const { return v6 ? 16 : 4; }
};

constexpr std::uint32_t kClients = 10U << 24, kAttackers = 44U << 24, kServers = 198U << 24 | 51U << 16 | 100U << 8;
constexpr std::uint32_t kPublic = 203U << 24 | 113U << 8 | 1;

class Frame {
 public:
  void u8(std::uint32_t value) { bytes_.push_back(static_cast<std::uint8_t>(value)); }
  void be16(std::uint32_t value) { u8(value >> 8), u8(value); }
  void be32(std::uint32_t value) { be16(value >> 16), be16(value); }
  void address(const Address& address) {
    if (address.v6) be32(0x20010db8), be32(0), be32(0);
    be32(address.number);
  }
  void set_be16(std::size_t at, std::uint32_t value) {
    bytes_[at] = static_cast<std::uint8_t>(value >> 8);
    bytes_[at + 1] = static_cast<std::uint8_t>(value);
  }
  /// Of the 16-bit words from `from` on.
  [[nodiscard]] std::uint64_t sum(std::size_t from, std::size_t to) const {
    std::uint64_t sum = 0;
    for (std::size_t at = from; at < to; at += 2)
      sum += static_cast<std::uint64_t>(bytes_[at]) << 8 | (at + 1 < to ? bytes_[at + 1] : 0U);
    return sum;
  }
  [[nodiscard]] static std::uint32_t checksum(std::uint64_t sum) {
    while (sum >> 16 != 0) sum = (sum & 0xffff) + (sum >> 16);
    return ~static_cast<std::uint32_t>(sum) & 0xffff;
  }
  void begin() { bytes_.assign({2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1}); }
  [[nodiscard]] std::size_t size() const { return bytes_.size(); }
  [[nodiscard]] const std::vector<std::uint8_t>& bytes() const { return bytes_; }

 private:
  std::vector<std::uint8_t> bytes_;
};

struct Segment {
  std::uint8_t protocol = kTcp;
  std::uint8_t flags = 0;
  std::uint32_t sequence = 0, acknowledged = 0;
  std::uint32_t payload = 0;
};

struct Ends {
  Address source, destination;
  std::uint16_t source_port = 0, destination_port = 0;

  [[nodiscard]] Ends reversed() const { return {destination, source, destination_port, source_port}; }
};

constexpr std::size_t kLink = 14;

void begin_ip(Frame& frame, const Ends& ends, std::uint8_t protocol, std::uint32_t payload, std::uint32_t id = 0,
              std::uint32_t fragment = 0) {
  frame.begin();
  frame.be16(ends.source.v6 ? 0x86dd : 0x0800);
  if (ends.source.v6) {
    const bool fragments = id != 0;
    frame.be32(0x60000000);
    frame.be16(payload + (fragments ? 8 : 0));
    frame.u8(fragments ? kFragmentHeader : protocol);
    frame.u8(64);
    frame.address(ends.source);
    frame.address(ends.destination);
    if (!fragments) return;
    frame.u8(protocol), frame.u8(0);
    frame.be16((fragment & 0x1fff) << 3 | fragment >> 13);
    frame.be32(id);
    return;
  }
  frame.be16(0x4500);
  frame.be16(20 + payload);
  frame.be16(id);
  frame.be16(fragment);
  frame.u8(64), frame.u8(protocol), frame.be16(0);
  frame.address(ends.source);
  frame.address(ends.destination);
  frame.set_be16(kLink + 10, Frame::checksum(frame.sum(kLink, kLink + 20)));
}

/// A whole packet with the right checksums.
void make(Frame& frame, const Ends& ends, const Segment& segment) {
  const std::uint32_t header = segment.protocol == kTcp ? 20 : 8;
  begin_ip(frame, ends, segment.protocol, header + segment.payload);
  const std::size_t transport = frame.size();
  frame.be16(ends.source_port);
  frame.be16(ends.destination_port);
  if (segment.protocol == kTcp) {
    frame.be32(segment.sequence);
    frame.be32(segment.acknowledged);
    frame.be16(0x5000U | segment.flags);
    frame.be16(60'000);
    frame.be32(0);
  } else {
    frame.be16(header + segment.payload);
    frame.be16(0);
  }
  for (std::uint32_t i = 0; i < segment.payload; ++i) frame.u8('x');
  const std::size_t addresses = transport - 2 * ends.source.size();
  const std::uint32_t checksum =
      Frame::checksum(frame.sum(addresses, frame.size()) + segment.protocol + header + segment.payload);
  frame.set_be16(transport + (segment.protocol == kTcp ? 16 : 6), checksum);
}

constexpr std::uint32_t kMoreV4 = 0x2000;

/// The first 16 bytes of a datagram of 24 bytes over UDP, or its last 16. `id` is not 0.
void make_fragment(Frame& frame, const Ends& ends, std::uint32_t id, bool first) {
  begin_ip(frame, ends, kUdp, 16, id, first ? kMoreV4 : 2);
  if (first) {
    frame.be16(ends.source_port);
    frame.be16(ends.destination_port);
    frame.be32(32U << 16);
    frame.be32(0);
    frame.be32(0);
  } else {
    for (int i = 0; i < 4; ++i) frame.be32(0);
  }
}

/// Writes packets to a pipe as a capture, one every microsecond.
class Packets {
 public:
  explicit Packets(int fd) : fd_(fd) {
    // Nanoseconds, version 2.4, 65,535 bytes a packet, Ethernet; little endian.
    buffer_ = std::string("\x4d\x3c\xb2\xa1\x02\0\x04\0\0\0\0\0\0\0\0\0\xff\xff\0\0\x01\0\0\0", 24);
  }
  void operator()(const Frame& frame) {
    static_assert(std::endian::native == std::endian::little);
    const std::array<std::uint32_t, 4> header{
        kBegin + static_cast<std::uint32_t>(us_ / 1'000'000), static_cast<std::uint32_t>(us_ % 1'000'000 * 1000),
        static_cast<std::uint32_t>(frame.size()), static_cast<std::uint32_t>(frame.size())};
    buffer_.append(reinterpret_cast<const char*>(header.data()), sizeof header);
    buffer_.append(reinterpret_cast<const char*>(frame.bytes().data()), frame.size());
    ++us_;
    ++count_;
    if (buffer_.size() > 1 << 18) flush();
  }
  void wait_s(std::uint32_t seconds) { us_ += seconds * std::uint64_t{1'000'000}; }
  void flush() {
    for (std::size_t at = 0; at < buffer_.size();) {
      const ssize_t written = ::write(fd_, buffer_.data() + at, buffer_.size() - at);
      if (written <= 0) break;  // the program has ended; its status says so
      at += static_cast<std::size_t>(written);
    }
    buffer_.clear();
  }
  [[nodiscard]] std::uint64_t count() const { return count_; }

 private:
  int fd_;
  std::string buffer_;
  std::uint64_t us_ = 0, count_ = 0;
};

/// Connections of clients to servers: half of them IPv4, half IPv6.
class Established {
 public:
  Established(Packets& packets, std::uint8_t protocol, std::uint32_t count, Address server_sees_v4 = {})
      : packets_(packets), protocol_(protocol), public_(server_sees_v4) {
    for (std::uint32_t i = 0; i < count; ++i) {
      const bool v6 = i % 2 != 0 && public_.number == 0;
      connections_.push_back(
          {{{kClients + i, v6}, {kServers + i % 200, v6}, static_cast<std::uint16_t>(20'000 + i), kServerPort}});
    }
    // An answer must not come in the same burst as what it answers: count is larger than that.
    for (Connection& connection : connections_) send(connection, true, kSyn);
    for (Connection& connection : connections_) send(connection, false, kSyn | kAck);
    for (Connection& connection : connections_) send(connection, true, kAck);
    begun_ = 2 * connections_.size();  // all but the first packets
    if (protocol != kUdp) return;
    packets_.wait_s(3);  // UDP with packets of both sides is assured then
    for (std::size_t i = 0; i < 2 * connections_.size(); ++i) talk();
  }
  /// The next packet, of one of the connections.
  void talk() {
    const std::size_t turn = talked_++;
    send(connections_[turn / 2 % connections_.size()], turn % 2 == 0, kAck, 10);
  }
  /// Packets that an established connection has sent.
  [[nodiscard]] std::uint64_t count() const { return begun_ + talked_; }

 private:
  struct Connection {
    Ends ends;
    std::uint32_t client_next = 1000, server_next = 5000;
  };

  void send(Connection& connection, bool by_client, std::uint8_t flags, std::uint32_t payload = 0) {
    Ends ends = by_client ? connection.ends : connection.ends.reversed();
    if (!by_client && public_.number != 0) ends.destination = public_;
    std::uint32_t& next = by_client ? connection.client_next : connection.server_next;
    const std::uint32_t other = by_client ? connection.server_next : connection.client_next;
    make(frame_, ends, {protocol_, flags, next, (flags & kAck) != 0 ? other : 0, payload});
    next += payload + ((flags & kSyn) != 0 ? 1 : 0);
    packets_(frame_);
  }

  Packets& packets_;
  std::uint8_t protocol_;
  Address public_;
  std::vector<Connection> connections_;
  std::uint64_t begun_ = 0, talked_ = 0;
  Frame frame_;
};

/// Number `i` of a flood: all have different ends.
Ends attacker(std::uint32_t i, bool both_families = true) {
  const bool v6 = both_families && i % 2 != 0;
  return {{kAttackers + i / 32'768, v6}, {kServers + 250, v6}, static_cast<std::uint16_t>(32'768 + i % 32'768), 80};
}

// The flood leaves by another port than what established connections send.
constexpr const char* kOnlyServersToOut = "  - filter: {expression: dst port 80 or not port 7000, match: {to: sink}}\n";

class Flood : public Program {
 protected:
  struct Outcome {
    int status = -1;
    std::uint64_t peak_bytes = 0;
    std::uint64_t packets = 0;
    nlohmann::json report;

    [[nodiscard]] const nlohmann::json& firewall(std::size_t i = 0) const { return report.at("functions").at(i); }
    [[nodiscard]] std::uint64_t connections(const char* counter) const {
      return firewall().at("details").at("connections").at(counter);
    }
    [[nodiscard]] std::uint64_t dropped(const char* reason, std::size_t i = 0) const {
      return firewall(i).at("dropped").at("reasons").at(reason);
    }
    [[nodiscard]] std::uint64_t matched(std::string_view rule) const {
      for (const auto& counted : firewall().at("details").at("rules"))
        if (counted.at("text").get<std::string>().find(rule) != std::string::npos) return counted.at("packets");
      return 0;
    }
  };

  /// Runs `functions` over what `send` sends.
  Outcome run(const std::string& functions, unsigned workers, const std::function<void(Packets&)>& send) const {
    write("chain.yaml",
          fmt::format("ports:\n  in: {{pcap: {{read: \"-\"}}}}\n  out: {{pcap: {{write: out.pcap}}}}\n"
                      "  sink: {{null: {{}}}}\n"
                      "chain:\n{}wire: {{in: out}}\nrun: {{workers: {}}}\noutputs: {{report: report.json}}\n",
                      functions, workers));
    Outcome outcome;
    std::array<int, 2> ends{};
    if (::pipe2(ends.data(), O_CLOEXEC) != 0) return outcome;
    std::signal(SIGPIPE, SIG_IGN);
    const pid_t program = ::fork();
    if (program == 0) {
      ::dup2(ends[0], STDIN_FILENO);
      if (::chdir(folder_.c_str()) != 0) ::_exit(127);
      ::dup2(::open("err", O_WRONLY | O_CREAT | O_TRUNC, 0600), STDERR_FILENO);
      ::execl(PENSTOCK_PROGRAM, "penstock", "run", "chain.yaml", "-q", nullptr);
      ::_exit(127);
    }
    ::close(ends[0]);
    {
      Packets packets(ends[1]);
      send(packets);
      packets.flush();
      outcome.packets = packets.count();
    }
    ::close(ends[1]);
    rusage used{};
    int status = 0;
    ::wait4(program, &status, 0, &used);
    outcome.status = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    outcome.peak_bytes = static_cast<std::uint64_t>(used.ru_maxrss) * 1024;
    if (outcome.status == 0) outcome.report = json("report.json");
    return outcome;
  }
  /// What the program needs besides its connections: with room for few of them, and with few packets.
  [[nodiscard]] std::uint64_t peak_without_connections(const std::string& functions, unsigned workers) const {
    return run(functions, workers, [](Packets& packets) { Established(packets, kTcp, 2); }).peak_bytes;
  }
  void write_filter() const {
    write("rules", R"({"nftables": [
{"table": {"family": "inet", "name": "t", "handle": 1}},
{"chain": {"family": "inet", "table": "t", "name": "forward", "handle": 1, "type": "filter", "hook": "forward",
           "prio": 0, "policy": "drop"}},
{"rule": {"family": "inet", "table": "t", "chain": "forward", "handle": 2, "expr": [
  {"match": {"op": "in", "left": {"ct": {"key": "state"}}, "right": "established"}}, {"accept": null}]}},
{"rule": {"family": "inet", "table": "t", "chain": "forward", "handle": 3, "expr": [
  {"match": {"op": "in", "left": {"ct": {"key": "state"}}, "right": "new"}}, {"accept": null}]}}]})");
  }
};

// As the manual of connection tracking says: 192 bytes for a connection, and up to six buckets of 4 bytes.
constexpr std::uint64_t kBytesPerConnection = 192 + 24;
// Memory of other kinds that a flood touches: rings of packets, the allocator's, tables of datagrams in fragments.
constexpr std::uint64_t kOtherBytes = 32 << 20;

std::string filter_of(std::uint32_t most) {
  return fmt::format("  - firewall: {{rules: rules, connections: {}}}\n{}", most, kOnlyServersToOut);
}

void expect_bounded(std::uint64_t peak, std::uint64_t without, std::uint64_t connections) {
  if (testing::stride() != 1) return;  // sanitizers need memory of their own
  EXPECT_LT(peak, without + connections * kBytesPerConnection + kOtherBytes)
      << without << " bytes are needed without connections";
}

/// The established connections, of the same protocol, talk meanwhile. Returns the packets that they have exchanged.
std::uint64_t flood(Packets& packets, std::uint32_t connections, std::uint32_t count, const Segment& segment) {
  Established established(packets, segment.protocol, connections);
  Frame frame;
  for (std::uint32_t i = 0; i < count; ++i) {
    make(frame, attacker(i), segment);
    packets(frame);
    if (i % 100 == 0) established.talk();
  }
  return established.count();
}

TEST_F(Flood, OfSynsNeitherFillsMemoryNorHarmsEstablishedConnections) {
  constexpr std::uint32_t kMost = 100'000, kEstablished = 1000, kWorkers = 2;
  const std::uint32_t syns = rounds(10'000'000);
  write_filter();
  std::uint64_t of_established = 0;
  const Outcome outcome = run(filter_of(kMost), kWorkers, [&](Packets& packets) {
    of_established = flood(packets, kEstablished, syns, {kTcp, kSyn, 1});
  });
  ASSERT_EQ(outcome.status, 0) << read("err");
  EXPECT_EQ(outcome.firewall().at("in").at("packets"), outcome.packets);
  EXPECT_EQ(outcome.firewall().at("dropped").at("packets"), 0) << "each one makes room for itself";
  EXPECT_EQ(outcome.matched("ct state established"), of_established);
  EXPECT_EQ(outcome.matched("ct state new"), std::uint64_t{syns} + kEstablished);
  EXPECT_EQ(outcome.connections("confirmed"), std::uint64_t{syns} + kEstablished);
  EXPECT_EQ(outcome.connections("most"), std::uint64_t{kMost} * kWorkers);
  EXPECT_EQ(outcome.connections("made_room"), std::uint64_t{syns} + kEstablished - outcome.connections("now"));
  EXPECT_EQ(records("out.pcap").size(), of_established + kEstablished);
  expect_bounded(outcome.peak_bytes, peak_without_connections(filter_of(16), kWorkers),
                 std::uint64_t{kMost} * kWorkers);
}

TEST_F(Flood, OfSynsIsDroppedAndCountedWhereAllConnectionsAreInUse) {
  constexpr std::uint32_t kMost = 1000;
  const std::uint32_t syns = rounds(2'000'000);
  write_filter();
  std::uint64_t of_established = 0;
  const Outcome outcome = run(filter_of(kMost), 1, [&](Packets& packets) {
    of_established = flood(packets, kMost, syns, {kTcp, kSyn, 1});
  });
  ASSERT_EQ(outcome.status, 0) << read("err");
  EXPECT_EQ(outcome.dropped("connections_full"), syns);
  EXPECT_EQ(outcome.firewall().at("dropped").at("packets"), syns);
  EXPECT_EQ(outcome.matched("ct state established"), of_established);
  EXPECT_EQ(outcome.connections("now"), kMost);
  expect_bounded(outcome.peak_bytes, peak_without_connections(filter_of(16), 1), kMost);
}

TEST_F(Flood, OfUdpNeitherFillsMemoryNorHarmsEstablishedConnections) {
  constexpr std::uint32_t kMost = 50'000, kEstablished = 1000, kWorkers = 2;
  const std::uint32_t datagrams = rounds(10'000'000);
  write_filter();
  std::uint64_t of_established = 0;
  const Outcome outcome = run(filter_of(kMost), kWorkers, [&](Packets& packets) {
    of_established = flood(packets, kEstablished, datagrams, {.protocol = kUdp, .payload = 4});
  });
  ASSERT_EQ(outcome.status, 0) << read("err");
  EXPECT_EQ(outcome.firewall().at("dropped").at("packets"), 0);
  EXPECT_EQ(outcome.matched("ct state established"), of_established);
  EXPECT_EQ(outcome.connections("confirmed"), std::uint64_t{datagrams} + kEstablished);
  EXPECT_EQ(outcome.connections("most"), std::uint64_t{kMost} * kWorkers);
  EXPECT_EQ(records("out.pcap").size(), of_established + kEstablished);
  expect_bounded(outcome.peak_bytes, peak_without_connections(filter_of(16), kWorkers),
                 std::uint64_t{kMost} * kWorkers);
}

TEST_F(Flood, OfFragmentsNeitherFillsMemoryNorHarmsEstablishedConnections) {
  constexpr std::uint32_t kMost = 20'000, kEstablished = 200, kWorkers = 2;
  const std::uint32_t fragments = rounds(10'000'000);
  write_filter();
  std::uint64_t of_established = 0, datagrams = 0, followers = 0;
  const Outcome outcome = run(filter_of(kMost), kWorkers, [&](Packets& packets) {
    Established established(packets, kUdp, kEstablished);
    Frame frame;
    for (std::uint32_t i = 0; i < fragments; ++i) {
      // First fragments that no other ones follow, then later ones that follow no first one.
      const bool first = i < fragments / 2;
      make_fragment(frame, attacker(i), 1 + i % 0xffff, first);
      packets(frame);
      followers += first ? 0 : 1;
      if (i % 100 == 0) established.talk();
      if (i % 1000 != 0) continue;
      const std::uint32_t n = i / 1000 % kEstablished;
      const bool v6 = n % 2 != 0;
      const Ends ends{
          {kClients + n, v6}, {kServers + n % 200, v6}, static_cast<std::uint16_t>(20'000 + n), kServerPort};
      make_fragment(frame, ends, 1 + i % 0xffff, true);
      packets(frame);
      make_fragment(frame, ends, 1 + i % 0xffff, false);
      packets(frame);
      ++datagrams;
    }
    of_established = established.count();
  });
  ASSERT_EQ(outcome.status, 0) << read("err");
  EXPECT_EQ(outcome.matched("ct state established"), of_established + 2 * datagrams);
  EXPECT_EQ(outcome.dropped("denied"), followers) << "those without a first one are invalid";
  EXPECT_EQ(outcome.firewall().at("details").at("connections").at("invalid").at("fragment"), followers);
  EXPECT_EQ(outcome.firewall().at("dropped").at("packets"), followers);
  expect_bounded(outcome.peak_bytes, peak_without_connections(filter_of(16), kWorkers),
                 std::uint64_t{kMost} * kWorkers);
}

class FloodOfNat : public Flood {
 protected:
  void write_rules() const {
    write("rules",
          "*nat\n:PREROUTING ACCEPT [0:0]\n:POSTROUTING ACCEPT [0:0]\n"
          "-A POSTROUTING -j SNAT --to-source 203.0.113.1\nCOMMIT\n"
          "*filter\n:FORWARD DROP [0:0]\n"
          "-A FORWARD -m conntrack --ctstate ESTABLISHED -j ACCEPT\n"
          "-A FORWARD -m conntrack --ctstate NEW -j ACCEPT\nCOMMIT\n");
  }
  [[nodiscard]] static std::string gateway(std::uint32_t most) {
    std::string text;
    for (const char* hook : {"prerouting", "forward", "postrouting"})
      text += fmt::format("  - firewall: {{rules: rules, hook: {}, connections: {}}}\n", hook, most);
    return text + kOnlyServersToOut;
  }
  /// What left: packets of established connections only, translated.
  void expect_translated(std::uint64_t from_clients, std::uint64_t to_clients) const {
    std::uint64_t sources = 0, destinations = 0, others = 0;
    for (const golden::Record& record : records("out.pcap")) {
      const auto at = [&](std::size_t offset) {
        std::uint32_t value = 0;
        std::memcpy(&value, record.bytes.data() + offset, 4);
        return __builtin_bswap32(value);
      };
      if (at(26) == kPublic) {
        ++sources;
      } else if (at(30) >> 24 == kClients >> 24) {
        ++destinations;
      } else {
        ++others;
      }
    }
    EXPECT_EQ(sources, from_clients);
    EXPECT_EQ(destinations, to_clients);
    EXPECT_EQ(others, 0U);
  }
};

TEST_F(FloodOfNat, NeitherFillsMemoryNorHarmsTranslations) {
  constexpr std::uint32_t kMost = 100'000, kEstablished = 1000;
  const std::uint32_t syns = rounds(10'000'000);
  write_rules();
  std::uint64_t of_established = 0;
  const Outcome outcome = run(gateway(kMost), 1, [&](Packets& packets) {
    Established established(packets, kTcp, kEstablished, {kPublic});
    Frame frame;
    for (std::uint32_t i = 0; i < syns; ++i) {
      Ends ends = attacker(i, false);
      ends.destination.number = kAttackers + i;
      make(frame, ends, {kTcp, kSyn, 1});
      packets(frame);
      if (i % 100 == 0) established.talk();
    }
    of_established = established.count();
  });
  ASSERT_EQ(outcome.status, 0) << read("err");
  EXPECT_EQ(outcome.connections("confirmed"), std::uint64_t{syns} + kEstablished);
  EXPECT_EQ(outcome.connections("most"), kMost);
  for (const std::size_t hook : {0U, 1U, 2U}) EXPECT_EQ(outcome.firewall(hook).at("dropped").at("packets"), 0) << hook;
  const std::uint64_t talked = of_established - 2 * kEstablished;
  expect_translated(2 * kEstablished + (talked + 1) / 2, kEstablished + talked / 2);
  // 8 bytes are touched if a connection's source is translated.
  expect_bounded(outcome.peak_bytes, peak_without_connections(gateway(16), 1), kMost + kMost / 16);
}

TEST_F(FloodOfNat, CountsWhatFindsNoPortAndKeepsTranslations) {
  constexpr std::uint32_t kEstablished = 300;
  const std::uint32_t syns = 64'512 + rounds(100'000);
  write_rules();
  std::uint64_t of_established = 0;
  const Outcome outcome = run(gateway(262'144), 1, [&](Packets& packets) {
    Established established(packets, kTcp, kEstablished, {kPublic});
    Frame frame;
    for (std::uint32_t i = 0; i < syns; ++i) {
      make(frame, attacker(i, false), {kTcp, kSyn, 1});
      packets(frame);
      if (i % 100 == 0) established.talk();
    }
    of_established = established.count();
  });
  ASSERT_EQ(outcome.status, 0) << read("err");
  const std::uint64_t untranslated = outcome.dropped("untranslated", 2);
  EXPECT_EQ(outcome.connections("confirmed"), syns + kEstablished - untranslated);
  EXPECT_LE(outcome.connections("confirmed"), 64'512U + kEstablished) << "ports from 1024 on, for one destination";
  EXPECT_GE(outcome.connections("confirmed"), 60'000U);
  const std::uint64_t talked = of_established - 2 * kEstablished;
  expect_translated(2 * kEstablished + (talked + 1) / 2, kEstablished + talked / 2);
}

}  // namespace
}  // namespace penstock
