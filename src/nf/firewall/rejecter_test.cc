// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// What rejected packets are answered with, on the CPU and after a GPU stage.

#include "nf/firewall/rejecter.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "function/testing/attached_stage.h"
#include "nf/firewall/firewall.h"
#include "nf/firewall/rules_for_test.h"
#include "packet/parse_core.h"
#include "packet/testing/packet_builder.h"

namespace penstock::firewall {
namespace {

using penstock::testing::Bytes;
using penstock::testing::packet;
using ::testing::ElementsAre;

std::unique_ptr<Firewall> firewall(const std::string& rules, std::vector<bool> answering = {true}) {
  Firewall::Setup setup;
  setup.answering.ports = std::move(answering);
  auto made = Firewall::build(rules_of(rules), classify::Engine::bitvector, std::move(setup));
  EXPECT_TRUE(made) << to_string(made.error());
  return std::move(*made);
}

/// Answers in short: "icmp 3/13", "reset", "-" for none.
std::string name_of(const Bytes& answer) {
  if (answer.empty()) return "-";
  Bytes frame = answer;
  PacketDescriptor descriptor;
  descriptor.length = descriptor.wire_length = static_cast<std::uint32_t>(frame.size());
  const PacketView view{frame.data(), &descriptor};
  parse(view);
  if (view.layout().transport == ip_protocol::kTcp) return "reset";
  return fmt::format("icmp {}/{}", view.icmp().type, view.icmp().code);
}

/// What a firewall's stages answer to these frames, which come together from port 0.
class Stages {
 public:
  explicit Stages(Firewall& firewall) : twin_(firewall), finish_(firewall.make_finish_stage(*twin_)) {
    twin_->set_emitter(emitter_);
  }

  std::vector<std::string> answers(const std::vector<Bytes>& frames) {
    begin(frames);
    twin_.process(views_);
    return taken();
  }
  /// The GPU stage has found that these counters decide.
  std::vector<std::string> answers_after_gpu(const std::vector<Bytes>& frames,
                                             const std::vector<std::uint32_t>& counters) {
    begin(frames);
    std::vector<const std::byte*> findings;
    for (const std::uint32_t& counter : counters) findings.push_back(reinterpret_cast<const std::byte*>(&counter));
    for (const PacketView& view : views_) view.packet->layout = {};  // the device has parsed it, not the host
    finish_->finish(views_, findings);
    return taken();
  }

 private:
  void begin(const std::vector<Bytes>& frames) {
    batch_.reset(0);
    views_.clear();
    for (const Bytes& frame : frames)
      EXPECT_TRUE(batch_.append(frame, {0, static_cast<std::uint32_t>(frame.size()), 0, LinkType::ethernet}));
    for (std::size_t i = 0; i < batch_.size(); ++i) {
      views_.push_back(batch_.view(i));
      parse(views_.back());
    }
    emissions_.begin(batch_);
    emitter_.go_into(&emissions_);
  }
  std::vector<std::string> taken() {
    std::vector<std::string> names(batch_.size(), "-");
    emissions_.arrange();
    while (!emissions_.none_left()) {
      const std::uint32_t cause = emissions_.next_cause();
      const PacketView made = emissions_.take();
      names[cause] = name_of({made.frame, made.frame + made.length()});
    }
    return names;
  }

  function::testing::AttachedStage twin_;
  std::unique_ptr<function::FinishStage> finish_;
  std::vector<std::uint8_t> memory_ = std::vector<std::uint8_t>(1 << 16);
  std::vector<PacketDescriptor> descriptors_ = std::vector<PacketDescriptor>(16);
  Batch batch_{memory_, descriptors_, {}};
  std::vector<PacketView> views_;
  function::Emissions emissions_{1 << 16, 16};
  function::Emitter emitter_;
};

Bytes udp4(std::uint16_t port) {
  return packet().eth().ipv4("10.0.0.1", "192.0.2.7").udp(1, port).payload("?").bytes();
}
Bytes udp6(std::uint16_t port) {
  return packet().eth().ipv6("fd00::1", "2001:db8::7").udp(1, port).payload("?").bytes();
}
Bytes syn4(std::uint16_t port) {
  return packet().eth().ipv4("10.0.0.1", "192.0.2.7").tcp(1, port, TcpHeader::kSyn).bytes();
}

constexpr const char* kIptables =
    "*filter\n:FORWARD ACCEPT [0:0]\n"
    "-A FORWARD -p tcp -m tcp --dport 22 -j REJECT --reject-with tcp-reset\n"
    "-A FORWARD -p udp -m udp --dport 1 -j REJECT --reject-with icmp-admin-prohibited\n"
    "-A FORWARD -p udp -m udp --dport 2 -j REJECT --reject-with host-prohib\n"
    "-A FORWARD -p udp -m udp --dport 3 -j REJECT\n"
    "-A FORWARD -p udp -m udp --dport 4 -j DROP\nCOMMIT\n";

TEST(Rejecter, AnswersAsTheRuleSays) {
  const auto rules = firewall(kIptables);
  Stages stages(*rules);
  const std::vector<Bytes> frames{syn4(22), udp4(1), udp4(2), udp4(3), udp4(4), udp4(5), syn4(23)};
  const std::vector<std::string> expected{"reset", "icmp 3/13", "icmp 3/10", "icmp 3/3", "-", "-", "-"};
  EXPECT_EQ(stages.answers(frames), expected);
  const auto none =
      static_cast<std::uint32_t>(RuleCounters::of_policy(rules->rules().rules.size(), NetworkLayer::ipv4));
  EXPECT_EQ(stages.answers_after_gpu(frames, {0, 1, 2, 3, 4, none, none}), expected);
  Stages others(*rules);
  EXPECT_THAT(others.answers_after_gpu({udp4(3), udp4(3)}, {3, 3}), ElementsAre("icmp 3/3", "icmp 3/3"));
}

TEST(Rejecter, AnswersOverIpv6AndForPolicies) {
  const auto rules = firewall(
      "# Generated by ip6tables-save v1.8.9\n*filter\n:FORWARD DROP [0:0]\n"
      "-A FORWARD -p udp -m udp --dport 1 -j REJECT --reject-with icmp6-adm-prohibited\n"
      "-A FORWARD -p udp -m udp --dport 2 -j REJECT --reject-with reject-route\n"
      "-A FORWARD -j REJECT\nCOMMIT\n");
  Stages stages(*rules);
  EXPECT_THAT(stages.answers({udp6(1), udp6(2), udp6(3)}), ElementsAre("icmp 1/1", "icmp 1/6", "icmp 1/4"));
}

TEST(Rejecter, AnswersAsNftablesDoes) {
  const std::string head =
      R"({"nftables": [{"metainfo": {"json_schema_version": 1}}, {"table": {"family": "inet", "name": "t", "handle": 1}},
      {"chain": {"family": "inet", "table": "t", "name": "c", "handle": 1, "type": "filter", "hook": "forward", "prio": 0,
      "policy": "accept"}})";
  const auto rule = [](int port, const char* reject) {
    return fmt::format(
        R"(, {{"rule": {{"family": "inet", "table": "t", "chain": "c", "handle": {}, "expr": [{{"match": {{"op": "==",
        "left": {{"payload": {{"protocol": "udp", "field": "dport"}}}}, "right": {}}}}}, {{"reject": {}}}]}}}})",
        port + 1, port, reject);
  };
  const auto rules =
      firewall(head + rule(1, "null") + rule(2, R"({"type": "icmpx", "expr": "admin-prohibited"})") +
               rule(3, R"({"type": "icmp", "expr": "net-prohibited"})") + rule(4, R"({"type": "icmpv6", "expr": 6})") +
               rule(5, R"({"type": "icmpx", "expr": 2})") + "]}");
  Stages stages(*rules);
  EXPECT_THAT(stages.answers({udp4(1), udp4(2), udp4(3), udp4(4), udp4(5)}),
              ElementsAre("icmp 3/3", "icmp 3/13", "icmp 3/9", "-", "icmp 3/1"));
  EXPECT_THAT(stages.answers({udp6(1), udp6(2), udp6(3), udp6(4), udp6(5)}),
              ElementsAre("icmp 1/4", "icmp 1/1", "-", "icmp 1/6", "icmp 1/3"));
  EXPECT_FALSE(read_rules(head + rule(2, R"({"type": "icmpx", "expr": "policy-fail"})") + "]}", "rules", {})
                   .value()
                   .unsupported.empty());
}

TEST(Rejecter, AnswersOnlyWhatCanBeTrusted) {
  const auto rules = firewall("*filter\n:FORWARD ACCEPT [0:0]\n-A FORWARD -j REJECT\nCOMMIT\n");
  Stages stages(*rules);
  Bytes wrong = udp4(9);
  wrong[40] ^= 1;  // the checksum
  Bytes wrong_header = udp4(9);
  wrong_header[24] ^= 1;
  EXPECT_THAT(stages.answers({wrong_header}), ElementsAre("-"));
  const Bytes error = packet().eth().ipv4("10.0.0.1", "192.0.2.7").icmp(3, 3).raw(Bytes(28)).bytes();
  EXPECT_THAT(stages.answers({wrong, error, udp4(9)}), ElementsAre("-", "-", "icmp 3/3"));
}

TEST(Rejecter, AnswersOnlyAtItsPorts) {
  const auto rules = firewall("*filter\n:FORWARD ACCEPT [0:0]\n-A FORWARD -j REJECT\nCOMMIT\n", {false, true});
  Stages stages(*rules);
  EXPECT_THAT(stages.answers({udp4(9)}), ElementsAre("-"));
  EXPECT_FALSE(firewall("*filter\n:FORWARD ACCEPT [0:0]\n-A FORWARD -j REJECT\nCOMMIT\n", {})->traits().emits);
}

TEST(Rejecter, SendsOnlySoManyErrorsToAHost) {
  const auto rules = firewall("*filter\n:FORWARD ACCEPT [0:0]\n-A FORWARD -j REJECT\nCOMMIT\n");
  Stages stages(*rules);
  int answers = 0;
  for (int i = 0; i < 1200; ++i) answers += stages.answers({udp4(9)}).front() == "-" ? 0 : 1;
  EXPECT_EQ(answers, 6);
}

}  // namespace
}  // namespace penstock::firewall
