// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// A carrier's NAT: the log says which host had which port of a public address, and when.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <map>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "program/program_for_test.h"

namespace penstock {
namespace {

using ::testing::HasSubstr;

constexpr std::uint64_t kSecond = 1'000'000'000;
constexpr std::uint32_t kFirstHost = 0x0a000001, kServer = 0xc6336401;
constexpr std::uint32_t kBegin = 1'764'000'000;

std::string big_endian(std::uint32_t value, int bytes) {
  std::string text;
  for (int i = bytes - 1; i >= 0; --i) text.push_back(static_cast<char>(value >> 8 * i & 0xff));
  return text;
}

std::uint32_t number_at(const std::string& bytes, std::size_t at, int count) {
  std::uint32_t value = 0;
  for (int i = 0; i < count; ++i)
    value = value << 8 | static_cast<std::uint8_t>(bytes[at + static_cast<std::size_t>(i)]);
  return value;
}

/// UDP without a checksum; its four bytes of payload are the host.
std::string frame(std::uint32_t host, std::uint16_t port, std::uint16_t to_port) {
  std::string ip = big_endian(0x45000020, 4) + big_endian(0, 4) + big_endian(0x40110000, 4) + big_endian(host, 4) +
                   big_endian(kServer, 4);
  std::uint32_t sum = 0;
  for (std::size_t i = 0; i < ip.size(); i += 2) sum += number_at(ip, i, 2);
  while (sum >> 16 != 0) sum = (sum & 0xffff) + (sum >> 16);
  ip.replace(10, 2, big_endian(~sum & 0xffff, 2));
  return std::string("\x02\0\0\0\0\x02\x02\0\0\0\0\x01\x08\0", 14) + ip + big_endian(port, 2) + big_endian(to_port, 2) +
         big_endian(12, 2) + big_endian(0, 2) + big_endian(host, 4);
}

class Capture {
 public:
  void add(std::uint64_t after_ns, const std::string& bytes) {
    const auto little = [&](std::uint32_t value) {
      for (int i = 0; i < 4; ++i) text_.push_back(static_cast<char>(value >> 8 * i & 0xff));
    };
    little(kBegin + static_cast<std::uint32_t>(after_ns / kSecond));
    little(static_cast<std::uint32_t>(after_ns % kSecond));
    little(static_cast<std::uint32_t>(bytes.size()));
    little(static_cast<std::uint32_t>(bytes.size()));
    text_ += bytes;
  }
  [[nodiscard]] const std::string& text() const { return text_; }

 private:
  // Nanoseconds, version 2.4, 65,535 bytes a packet, Ethernet; little endian.
  std::string text_ = std::string("\x4d\x3c\xb2\xa1\x02\0\x04\0\0\0\0\0\0\0\0\0\xff\xff\0\0\x01\0\0\0", 24);
};

class CarrierNat : public Program {
 protected:
  void SetUp() override {
    Program::SetUp();
    write("rules",
          "*nat\n:PREROUTING ACCEPT [0:0]\n:POSTROUTING ACCEPT [0:0]\n"
          "-A POSTROUTING -s 10.0.0.0/8 -j SNAT --to-source 203.0.113.1-203.0.113.2\nCOMMIT\n");
  }
  [[nodiscard]] int run(const std::string& blocks, const std::string& more = "") const {
    write(
        "chain.yaml",
        fmt::format("ports:\n  lan: {{pcap: {{read: in.pcap}}}}\n  wan: {{pcap: {{write: out.pcap}}}}\nchain:\n"
                    "  - firewall: {{rules: rules, hook: prerouting, port_blocks: {{{0}}}{1}}}\n"
                    "  - firewall: {{rules: rules, hook: postrouting, port_blocks: {{{0}}}}}\n"
                    "run: {{workers: 1, batch: {{packets: 1}}}}\noutputs: {{nat_log: nat.log, report: report.json}}\n",
                    blocks, more));
    return shell("TZ=UTC penstock run chain.yaml -q");
  }
};

TEST_F(CarrierNat, LogsWhoHasWhichPorts) {
  Capture in;
  // Connections end 30 s after their last packet, when the next burst of packets comes. The first host's block is held
  // for 60 s then.
  constexpr std::uint64_t kBurst = 64, kMs = 1'000'000;
  for (const auto& [seconds, host] : {std::pair{0, 0}, {40, 1}, {110, 2}}) {
    for (std::uint64_t i = 0; i < kBurst; ++i) {
      in.add(static_cast<std::uint64_t>(seconds) * kSecond + i * kMs,
             frame(kFirstHost + static_cast<std::uint32_t>(host), 4000, 53));
    }
  }
  write("in.pcap", in.text());
  write("rules",
        "*nat\n:PREROUTING ACCEPT [0:0]\n:POSTROUTING ACCEPT [0:0]\n"
        "-A POSTROUTING -s 10.0.0.0/8 -j SNAT --to-source 203.0.113.1\nCOMMIT\n");
  ASSERT_EQ(run("size: 512, per_host: 2, hold: 60s"), 0) << read("err");
  EXPECT_EQ(read("nat.log"),
            "2025-11-24T16:00:00.000000+0000 penstock: allocated HOST=10.0.0.1 ADDRESS=203.0.113.1 PORTS=1024-1535\n"
            "2025-11-24T16:00:40.000000+0000 penstock: allocated HOST=10.0.0.2 ADDRESS=203.0.113.1 PORTS=1536-2047\n"
            "2025-11-24T16:01:50.000000+0000 penstock: released HOST=10.0.0.1 ADDRESS=203.0.113.1 PORTS=1024-1535\n"
            "2025-11-24T16:01:50.000000+0000 penstock: allocated HOST=10.0.0.3 ADDRESS=203.0.113.1 PORTS=2048-2559\n"
            "2025-11-24T16:01:50.063000+0000 penstock: released HOST=10.0.0.2 ADDRESS=203.0.113.1 PORTS=1536-2047\n"
            "2025-11-24T16:01:50.063000+0000 penstock: released HOST=10.0.0.3 ADDRESS=203.0.113.1 PORTS=2048-2559\n");
}

TEST_F(CarrierNat, TheLogAnswersWhoHadAnAddressAndAPortAtATime) {
  std::mt19937 random(1);
  Capture in;
  std::uint64_t time = 0;
  for (int i = 0; i < 20'000; ++i) {
    time += random() % (i % 1000 == 0 ? 100 * kSecond : kSecond / 20);
    in.add(time, frame(kFirstHost + static_cast<std::uint32_t>(random() % (1 + random() % 40)),
                       static_cast<std::uint16_t>(1000 + random() % 300), static_cast<std::uint16_t>(random() % 3)));
  }
  write("in.pcap", in.text());
  ASSERT_EQ(run("size: 64, per_host: 3, hold: 5s, first_port: 64000"), 0) << read("err");

  struct Interval {
    std::uint64_t from_us, to_us;
    std::string host;
  };
  std::map<std::string, std::vector<Interval>> blocks;  // by address and ports
  std::istringstream lines(read("nat.log"));
  std::size_t released = 0;
  for (std::string line; std::getline(lines, line);) {
    std::string stamp, program, what, host, address, ports;
    std::istringstream(line) >> stamp >> program >> what >> host >> address >> ports;
    std::tm tm{};
    ASSERT_NE(::strptime(stamp.c_str(), "%Y-%m-%dT%H:%M:%S", &tm), nullptr) << line;
    const std::uint64_t us = static_cast<std::uint64_t>(::timegm(&tm)) * 1'000'000 + std::stoul(stamp.substr(20, 6));
    std::vector<Interval>& of_block = blocks[address.substr(8) + " " + ports.substr(6)];
    if (what == "allocated") {
      of_block.push_back({us, ~std::uint64_t{0}, host.substr(5)});
    } else {
      ASSERT_EQ(of_block.back().host, host.substr(5));
      of_block.back().to_us = us;
      ++released;
    }
  }
  EXPECT_GT(released, 20U);
  const auto out = records("out.pcap");
  EXPECT_GT(out.size(), 10'000U);
  // The end of the run, with its last packet, takes all blocks back.
  for (const golden::Record& record : out) {
    const auto text = [](std::uint32_t a) {
      return fmt::format("{}.{}.{}.{}", a >> 24, a >> 16 & 255, a >> 8 & 255, a & 255);
    };
    const std::uint32_t first = 64'000 + (number_at(record.bytes, 34, 2) - 64'000) / 64 * 64;
    std::vector<std::string> answers;
    std::string all;
    for (const Interval& one :
         blocks[fmt::format("{} {}-{}", text(number_at(record.bytes, 26, 4)), first, first + 63)]) {
      all += fmt::format("{} to {}: {}\n", one.from_us, one.to_us, one.host);
      if (record.time_ns / 1000 >= one.from_us && record.time_ns / 1000 <= one.to_us) answers.push_back(one.host);
    }
    ASSERT_THAT(answers, ::testing::ElementsAre(text(number_at(record.bytes, 42, 4))))
        << golden::to_string(record) << "\n"
        << all;
  }
  const auto report = json("report.json").dump();
  EXPECT_THAT(report, HasSubstr("\"per_host\":"));
  EXPECT_THAT(report, HasSubstr("\"port_blocks\""));
}

TEST_F(CarrierNat, AReloadKeepsBlocksAndTranslations) {
  constexpr std::uint64_t kMicrosecond = 1000;
  Capture first, rest;
  // The first host has a connection before and after the reload, and a new one then; the second host comes then.
  for (std::uint64_t i = 0; i < 3; ++i) first.add(i * kMicrosecond, frame(kFirstHost, 4000, 53));
  rest.add(kSecond, frame(kFirstHost, 4000, 53));
  rest.add(kSecond + kMicrosecond, frame(kFirstHost, 4001, 53));
  rest.add(kSecond + 2 * kMicrosecond, frame(kFirstHost + 1, 4000, 53));
  write("first", first.text());
  write("rest", rest.text().substr(24));  // without the header of the file
  write("chain.yaml",
        "ports:\n  lan: {pcap: {read: pipe}}\n  wan: {pcap: {write: out.pcap}}\nchain:\n"
        "  - firewall: {rules: rules, hook: prerouting, port_blocks: {size: 512}}\n"
        "  - firewall: {rules: rules, hook: postrouting, port_blocks: {size: 512}}\n"
        "run: {workers: 1, batch: {packets: 1}}\noutputs: {nat_log: nat.log, report: report.json}\n");
  ASSERT_EQ(shell("mkfifo pipe\n"
                  "{ TZ=UTC penstock run chain.yaml -q --control run.sock; echo $? >status; } 2>run.err &\n"
                  "exec 3>pipe; cat first >&3\n"
                  "for i in {1..200}; do penstock ctl --socket run.sock conntrack count 2>/dev/null | grep -q '^1 ' && "
                  "break; sleep 0.05; done\n"
                  "sed -i 's/^COMMIT/-A POSTROUTING -p tcp -j ACCEPT\\nCOMMIT/' rules\n"
                  "penstock ctl --socket run.sock reload || exit 1\n"
                  "cat rest >&3; exec 3>&-; wait; exit $(cat status)"),
            0)
      << read("err") << read("run.err");
  EXPECT_THAT(read("out"), HasSubstr("firewall#2: 1 NAT rule added"));
  std::vector<std::pair<std::uint32_t, std::uint32_t>> sources;
  for (const golden::Record& record : records("out.pcap"))
    sources.emplace_back(number_at(record.bytes, 26, 4), number_at(record.bytes, 34, 2));
  ASSERT_EQ(sources.size(), 6U);
  for (std::size_t i = 1; i < 4; ++i) EXPECT_EQ(sources[i], sources[0]) << "the known connection";
  EXPECT_EQ(sources[4].first, sources[0].first);
  EXPECT_EQ((sources[4].second - 1024) / 512, (sources[0].second - 1024) / 512) << "the block of the host";
  EXPECT_NE(sources[4], sources[0]);
  const std::string log = read("nat.log");
  std::size_t allocated = 0;
  for (std::size_t at = 0; (at = log.find("allocated HOST=10.0.0.1 ", at)) != std::string::npos; ++at) ++allocated;
  EXPECT_EQ(allocated, 1U) << log;
  EXPECT_THAT(log, HasSubstr("allocated HOST=10.0.0.2 "));
  EXPECT_NE(sources[5], sources[4]);
}

TEST_F(CarrierNat, RefusesWhatContradicts) {
  EXPECT_EQ(run("size: 100"), 2);
  EXPECT_THAT(read("err"), HasSubstr("a multiple of 64"));
  EXPECT_EQ(run("ports: 100"), 2);
  EXPECT_THAT(read("err"), HasSubstr("unknown property of port blocks"));
  EXPECT_EQ(run("size: 512", ", helpers: {ftp: 21}"), 2);
  EXPECT_THAT(read("err"), HasSubstr("port blocks and helpers"));
  write("rules",
        "*nat\n:POSTROUTING ACCEPT [0:0]\n"
        "-A POSTROUTING -p udp -j SNAT --to-source 203.0.113.1:5000-6000\nCOMMIT\n");
  EXPECT_EQ(run("size: 512"), 2);
  EXPECT_THAT(read("err"), HasSubstr("a rule says to which ports sources are translated"));
}

}  // namespace
}  // namespace penstock
