// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Runs the program in the kernel (BPF_PROG_TEST_RUN) and compares it with worker_of.h. Skipped if the kernel refuses
// it.

#include "port/live/steering.h"

#include <gtest/gtest.h>
#include <linux/bpf.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "packet/ethernet.h"
#include "packet/ip.h"
#include "packet/testing/fragments.h"
#include "packet/testing/packet_builder.h"
#include "port/worker_of.h"

namespace penstock::port {
namespace {

using penstock::testing::fragments_of;
using penstock::testing::packet;
using Frame = std::vector<std::uint8_t>;

class Program {
 public:
  explicit Program(unsigned workers) : program_(load_steering_program(workers)) {}
  [[nodiscard]] bool is_loaded() const { return static_cast<bool>(program_); }

  [[nodiscard]] unsigned run(const Frame& frame) const {
    bpf_attr attributes{};
    attributes.test.prog_fd = static_cast<std::uint32_t>(program_.get());
    attributes.test.data_in = reinterpret_cast<std::uint64_t>(frame.data());
    attributes.test.data_size_in = static_cast<std::uint32_t>(frame.size());
    if (::syscall(SYS_bpf, BPF_PROG_TEST_RUN, &attributes, sizeof attributes) != 0) {
      ADD_FAILURE() << "BPF_PROG_TEST_RUN: " << std::strerror(errno);
      return 0;
    }
    return attributes.test.retval;
  }

 private:
  FileDescriptor program_;
};

unsigned expected(const Frame& frame, unsigned workers) {
  return worker_of(frame, static_cast<std::uint32_t>(frame.size()), LinkType::ethernet, workers);
}

class Steering : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!Program(2).is_loaded()) GTEST_SKIP() << "the kernel refuses the program: " << std::strerror(errno);
  }
};

std::string ipv4_address(std::mt19937& random) {
  std::string text;
  for (int i = 0; i < 4; ++i) text += (i > 0 ? "." : "") + std::to_string(random() % 256);
  return text;
}
std::string ipv6_address(std::mt19937& random) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text;
  for (int i = 0; i < 8; ++i) {
    text += i > 0 ? ":" : "";
    for (int digit = 0; digit < 4; ++digit) text += kDigits[random() % 16];
  }
  return text;
}

TEST_F(Steering, AgreesWithTheHashForTcpAndUdp) {
  std::mt19937 random(11);
  for (const unsigned workers : {2U, 3U, 7U, 16U}) {
    const Program program(workers);
    std::set<unsigned> seen;
    for (int i = 0; i < 2000; ++i) {
      const auto port = [&] { return static_cast<std::uint16_t>(random()); };
      const bool ipv4 = random() % 2 == 0, tcp = random() % 2 == 0;
      auto builder = packet().eth();
      ipv4 ? builder.ipv4(ipv4_address(random), ipv4_address(random))
           : builder.ipv6(ipv6_address(random), ipv6_address(random));
      const std::uint16_t source = port(), destination = port();
      tcp ? builder.tcp(source, destination) : builder.udp(source, destination);
      const Frame frame = builder.payload("payload").bytes();
      const unsigned worker = program.run(frame);
      seen.insert(worker);
      // TCP from or to a tunnel's port: the program leaves it to the exchange.
      if (tcp && (is_tunnel_port(source) || is_tunnel_port(destination))) continue;
      ASSERT_EQ(worker, is_tunnel_port(source) || is_tunnel_port(destination) ? 0 : expected(frame, workers));
    }
    EXPECT_EQ(seen.size(), workers);
  }
}

TEST_F(Steering, GivesBothDirectionsToOneWorker) {
  const Program program(16);
  for (std::uint16_t port = 1; port < 200; ++port) {
    const Frame there = packet().eth().ipv6("fd00::1", "fd00::2").tcp(port, 443).bytes();
    const Frame back = packet().eth().ipv6("fd00::2", "fd00::1").tcp(443, port).bytes();
    ASSERT_EQ(program.run(there), program.run(back));
  }
}

TEST_F(Steering, GivesOtherFramesToTheFirstWorker) {
  const Program program(16);
  const auto first = [&](const Frame& frame) { return program.run(frame) == 0; };
  for (std::uint16_t port = 1; port < 100; ++port) {
    const std::string host = "10.0.0." + std::to_string(port);
    EXPECT_TRUE(first(packet().eth().ipv4(host, "10.0.0.1").icmp(8).payload("ping").bytes()));
    EXPECT_TRUE(first(packet().eth().ipv4(host, "10.0.0.1").udp(4789, port).payload("vxlan").bytes()));
    EXPECT_TRUE(first(packet().eth().ipv4(host, "10.0.0.1").udp(port, 6081).payload("geneve").bytes()));
    EXPECT_TRUE(first(packet().eth().ipv4(host, "10.0.0.1").sctp(port, 1).payload(std::string(12, 'x')).bytes()));
    EXPECT_TRUE(first(packet().eth().ether_type(ether_type::kArp).payload(std::string(40, char(port))).bytes()));
    EXPECT_TRUE(first(packet().eth().ipv6("fd00::1", "fd00::2").extension(60).udp(port, 53).payload("x").bytes()));
    Frame options = packet().eth().ipv4(host, "10.0.0.1").udp(port, 53).payload("xxxx").bytes();
    options[14] = 0x46;
    EXPECT_TRUE(first(options));
    const Frame whole = packet().eth().ipv4(host, "10.0.0.1").udp(port, 53).payload(std::string(64, 'x')).bytes();
    for (const Frame& fragment : fragments_of(whole, {32}, port)) EXPECT_TRUE(first(fragment));
  }
}

TEST_F(Steering, GivesTruncatedFramesToTheFirstWorker) {
  const Program program(16);
  for (std::uint16_t port = 1; port < 30; ++port) {
    for (const Frame& whole : {packet().eth().ipv4("10.0.0.1", "10.0.0.2").udp(port, 53).bytes(),
                               packet().eth().ipv6("fd00::1", "fd00::2").tcp(port, 53).bytes()}) {
      const std::size_t transport = whole[12] == 0x08 ? 34 : 54;
      // The kernel does not take shorter frames for a test.
      for (std::size_t length = transport; length < transport + 4; ++length) {
        EXPECT_EQ(program.run(Frame(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(length))), 0U);
      }
    }
  }
}

}  // namespace
}  // namespace penstock::port
