// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Sends frames through this kernel, as a router, with rules of nftables that test link headers, and compares what
// leaves with what our firewall lets through.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "function/arrivals.h"
#include "function/emitter.h"
#include "function/testing/attached_stage.h"
#include "nf/firewall/firewall.h"
#include "nf/firewall/nftables/ethernet_kernel_for_test.h"
#include "nf/firewall/rules_for_test.h"
#include "packet/parse_core.h"
#include "packet/testing/packet_builder.h"

namespace penstock::firewall::nftables {
namespace {

constexpr MacAddress kHost{{2, 0, 0, 0, 0, 1}}, kOtherHost{{2, 0, 0, 0, 0, 2}};
constexpr MacAddress kWritten{{2, 0, 0, 0, 0, 0xaa}};

Frame framed(testing::PacketBuilder builder, const MacAddress& source, const MacAddress& destination) {
  Frame frame = builder.payload("0123456789abcdef0123").bytes();  // the end is overwritten
  auto& header = *reinterpret_cast<EthernetHeader*>(frame.data());
  header.source = source;
  header.destination = destination;
  return frame;
}

std::string hex(const Frame& frame) {
  std::string text;
  for (const std::uint8_t byte : frame) text += fmt::format("{:02x}", byte);
  return text;
}

ReadOptions options_at(Hook hook) {
  ReadOptions options;
  options.interfaces.ports.assign(EthernetKernel::kInterfaces.begin(), EthernetKernel::kInterfaces.end());
  options.hook = hook;
  return options;
}

class RoutingKernel : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { kernel = EthernetKernel::start(EthernetKernel::Way::route, why); }
  static void TearDownTestSuite() { kernel.reset(); }
  void SetUp() override {
    if (!kernel) GTEST_SKIP() << why;
  }

  static inline std::unique_ptr<EthernetKernel> kernel;
  static inline std::string why;
};

/// Whether our firewall passes a frame that arrived, and of which a router has written the link header since.
bool passes(function::testing::AttachedStage& stage, Frame frame, bool is_written, PortIndex out) {
  PacketDescriptor descriptor;
  descriptor.length = descriptor.wire_length = static_cast<std::uint32_t>(frame.size());
  PacketView view{frame.data(), &descriptor};
  parse(view);
  function::Arrivals arrivals(1);
  arrivals.add({&view, 1});
  function::Emitter emitter;
  emitter.know_arrivals(&arrivals);
  stage->set_emitter(emitter);
  if (is_written) view.ethernet().source = view.ethernet().destination = kWritten;
  descriptor.verdict = Verdict::forward(out);
  stage.process({&view, 1});
  return descriptor.verdict.alive();
}

TEST_F(RoutingKernel, TestsTheLinkHeadersOfArrivalAsOurFirewallDoes) {
  std::vector<Frame> frames;
  for (const MacAddress& source : {kHost, kOtherHost}) {
    for (const char* destination : {"10.1.2.3", "10.3.2.1"}) {
      frames.push_back(
          framed(testing::packet().eth().ipv4("10.9.0.1", destination).udp(1, 53), source, EthernetKernel::kOwn));
      frames.push_back(
          framed(testing::packet().eth().ipv4("10.9.0.1", destination).tcp(1, 80, 2), source, EthernetKernel::kOwn));
    }
    frames.push_back(
        framed(testing::packet().eth().ipv6("2001:db8::9", "2001:db8::1").udp(1, 53), source, EthernetKernel::kOwn));
    frames.push_back(
        framed(testing::packet().eth().ipv6("2001:db8::9", "2001:db9::1").udp(1, 53), source, EthernetKernel::kOwn));
  }
  std::string answer;
  ASSERT_TRUE(EthernetKernel::load("", answer)) << answer;
  const std::vector<unsigned> ways = kernel->pass(frames);
  const std::string own = "02:00:00:00:00:10", host = "02:00:00:00:00:01";
  const std::vector<std::string> rules = {
      "ether saddr " + host + " accept",
      "ether saddr != " + host + " accept",
      "ether saddr { " + host + ", 02:00:00:00:00:aa } accept",
      "ether saddr 02:00:00:00:00:aa accept\nether saddr 02:00:00:00:00:02 udp dport 53 accept",
      "ether daddr " + own + " tcp dport 80 accept",
      "ether daddr != " + own + " accept\nip daddr 10.3.0.0/16 accept",
      "meta pkttype host udp dport 53 accept",
      "meta pkttype unicast ip6 daddr 2001:db9::/32 accept",
      "meta pkttype != { broadcast, multicast } ether saddr " + host + " accept",
      "meta pkttype multicast accept\ntcp dport 80 accept",
      "ether saddr @known accept",
      "ether saddr != @known accept",
      "ether saddr " + host + " meta mark set 7\nmeta mark 7 accept",
  };
  for (const Hook hook : {Hook::prerouting, Hook::forward, Hook::postrouting}) {
    for (const std::string& rule : rules) {
      const std::string table = fmt::format(
          "table inet t {{\nset known {{ type ether_addr; elements = {{ {} }}; }}\nchain c {{\ntype filter hook {} "
          "priority 0; policy drop;\n{}\n}}\n}}\n",
          host, name_of(hook), rule);
      ASSERT_TRUE(EthernetKernel::load(table, answer)) << answer << table;
      const std::vector<unsigned> left = kernel->pass(frames);
      const bool is_written = hook != Hook::prerouting;
      auto made = Firewall::build(rules_of(EthernetKernel::rules(), options_at(hook)), classify::Engine::bitvector,
                                  {.hook = hook, .link_is_written = is_written});
      ASSERT_TRUE(made) << to_string(made.error());
      function::testing::AttachedStage stage(**made);
      unsigned passed = 0;
      for (std::size_t i = 0; i < frames.size(); ++i) {
        ASSERT_NE(ways[i], 0U) << "without rules, all must pass: " << hex(frames[i]);
        passed += left[i] != 0 ? 1 : 0;
        EXPECT_EQ(passes(stage, frames[i], is_written, ways[i] == 2 ? 1 : 2), left[i] != 0) << hex(frames[i]) << "\n"
                                                                                            << table;
      }
      EXPECT_GT(passed, 0U) << table;
      EXPECT_LT(passed, frames.size()) << table;
    }
  }
}

}  // namespace
}  // namespace penstock::firewall::nftables
