// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "plan/fit.h"

#include <gtest/gtest.h>

#include <array>

namespace penstock::plan {
namespace {

using function::NfTraits;
using function::Processor;
using Reasons = std::array<std::string_view, 1>;
constexpr Reasons kDenied{"denied"}, kBroken{"broken"};

NfTraits planned() {
  NfTraits traits;
  traits.name = "firewall";
  traits.cpu = {{Field::ipv4_src, Field::verdict}, {Field::verdict}};
  traits.devices[Processor::gpu] = traits.cpu;
  traits.finish = Access{{Field::frame_shape}, {}};
  traits.findings_bytes = 4;
  traits.growth = {16, 32};
  traits.drop_reasons = kDenied;
  return traits;
}

std::string misfit(const NfTraits& next, Processor processor = Processor::gpu, const NfTraits& running = planned()) {
  return to_string(check_fit("firewall#2", running, next, processor));
}

TEST(Fit, AcceptsTheSameTraitsAndFewerFields) {
  NfTraits next = planned();
  EXPECT_EQ(misfit(next), "");
  next.cpu = {{Field::verdict}, {}};
  next.devices[Processor::gpu] = next.cpu;
  next.growth = {0, 32};
  EXPECT_EQ(misfit(next), "");
}

TEST(Fit, NamesTheFieldsThatTheChainDoesNotProvide) {
  NfTraits next = planned();
  next.cpu.reads |= {Field::tcp_flags, Field::in_port};
  next.devices[Processor::gpu]->writes |= {Field::ipv4_dst};
  next.finish->reads |= {Field::l4_dst_port};
  EXPECT_EQ(misfit(next),
            "firewall#2: reads tcp_flags in_port, for which the running chain is not planned: it needs a new run\n"
            "firewall#2: its stage for gpu writes ipv4_dst, for which the running chain is not planned: it needs a new "
            "run\n"
            "firewall#2: its finish stage reads l4_dst_port, for which the running chain is not planned: it needs a "
            "new run");
  EXPECT_EQ(misfit(next, Processor::cpu),
            "firewall#2: reads tcp_flags in_port, for which the running chain is not planned: it needs a new run");
}

TEST(Fit, RefusesEachTraitThatThePlanDependsOn) {
  const auto with = [](auto change) {
    NfTraits next = planned();
    change(next);
    return misfit(next);
  };
  EXPECT_EQ(with([](NfTraits& t) { t.name = "router"; }),
            "firewall#2: another kind of function runs here: it needs a new run: found router, expected firewall");
  EXPECT_EQ(with([](NfTraits& t) { t.drop_reasons = kBroken; }),
            "firewall#2: its drop reasons differ, and the running chain counts by them: it needs a new run: found "
            "broken, expected denied");
  EXPECT_EQ(with([](NfTraits& t) { t.stack = stack::StackNeed::flow; }),
            "firewall#2: it needs another part of the chain's stack: it needs a new run: found flow, expected none");
  EXPECT_EQ(with([](NfTraits& t) { t.emits = true; }),
            "firewall#2: makes packets, for which the running chain is not planned: it needs a new run");
  EXPECT_NE(with([](NfTraits& t) { t.replaces_frames = true; }), "");
  EXPECT_NE(with([](NfTraits& t) { t.chooses_port = true; }), "");
  EXPECT_EQ(with([](NfTraits& t) { t.growth.head = 17; }),
            "firewall#2: adds more bytes at the head of a frame than the running chain is planned for: it needs a new "
            "run: found 17, expected at most 16");
  EXPECT_NE(with([](NfTraits& t) { t.growth.tail = 33; }), "");
  EXPECT_NE(with([](NfTraits& t) { t.finish_waits = true; }), "");
  EXPECT_EQ(with([](NfTraits& t) { t.findings_bytes = 8; }),
            "firewall#2: the running chain is planned for another number of bytes of findings per packet: it needs a "
            "new run: found 8, expected 4");
  EXPECT_NE(with([](NfTraits& t) { t.state_bytes = 8; }), "");
  EXPECT_EQ(with([](NfTraits& t) { t.finish.reset(); }),
            "firewall#2: no longer has a finish stage, but the running chain is planned for it: it needs a new run");
}

TEST(Fit, AFunctionOnADeviceMustKeepItsStageThere) {
  NfTraits next = planned();
  next.devices = {};
  EXPECT_EQ(misfit(next),
            "firewall#2: no longer has a stage for gpu, but the running chain is planned for it: it needs a new run");
  EXPECT_EQ(misfit(next, Processor::cpu), "") << "on the CPU, device stages do not count";
}

TEST(Fit, AFunctionOnTheCpuStaysThereIfOnlyTheNextOneHasADeviceStage) {
  NfTraits running = planned();
  running.devices = {};
  running.finish.reset();
  running.findings_bytes = 0;
  EXPECT_EQ(misfit(planned(), Processor::gpu, running), "");
}

}  // namespace
}  // namespace penstock::plan
