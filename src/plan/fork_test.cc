// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "plan/fork.h"

#include <gtest/gtest.h>

namespace penstock::plan {
namespace {

ArmCondition from(std::vector<PortIndex> ports) { return {std::move(ports), {}}; }
ArmCondition to(std::vector<PortIndex> ports) { return {{}, std::move(ports)}; }

Fork fork_of(std::vector<std::vector<ArmCondition>> arms) {
  Fork fork;
  for (std::vector<ArmCondition>& conditions : arms) fork.arms.push_back({0, 0, std::move(conditions), ""});
  return fork;
}

PacketDescriptor packet(PortIndex in, PortIndex out) {
  PacketDescriptor descriptor;
  descriptor.in_port = in;
  descriptor.verdict = Verdict::forward(out);
  return descriptor;
}

TEST(Fork, SendsAPacketThroughTheFirstArmThatItMeets) {
  ArmCondition both = from({0});
  both.out_ports = {2};
  const Fork fork = fork_of({{both}, {from({0, 1})}, {to({1, 3})}});
  EXPECT_EQ(fork.arm_of(packet(0, 2)), 0);
  EXPECT_EQ(fork.arm_of(packet(0, 1)), 1);
  EXPECT_EQ(fork.arm_of(packet(1, 2)), 1);
  EXPECT_EQ(fork.arm_of(packet(3, 3)), 2);
  EXPECT_EQ(fork.arm_of(packet(3, kNoPort)), Fork::kNoArm);
  EXPECT_EQ(fork.arm_of(packet(3, 2)), Fork::kNoArm);
  EXPECT_EQ(fork.paths(), 4U) << "the last goes straight on";
}

TEST(Fork, SendsOtherPacketsThroughAnArmWithoutACondition) {
  const Fork fork = fork_of({{from({0})}, {}});
  EXPECT_EQ(fork.arm_of(packet(7, kNoPort)), 1);
  EXPECT_TRUE(fork.exhaustive());
  EXPECT_EQ(fork.paths(), 2U);
}

TEST(Fork, SendsAPacketThroughAnArmIfOneConditionHolds) {
  const Fork fork = fork_of({{from({1}), to({1})}});
  EXPECT_EQ(fork.arm_of(packet(1, 0)), 0);
  EXPECT_EQ(fork.arm_of(packet(0, 1)), 0);
  EXPECT_EQ(fork.arm_of(packet(0, 0)), Fork::kNoArm);
  EXPECT_TRUE(fork.arms[0].admits(0)) << "it may leave by the other";
}

TEST(Fork, CoversArmsWhoseConditionsAnEarlierArmIncludes) {
  const auto arm = [](std::vector<ArmCondition> conditions) { return Arm{0, 0, std::move(conditions), ""}; };
  const Fork fork = fork_of({{from({0})}, {to({1})}});
  EXPECT_TRUE(fork.covers(arm({to({1})})));
  EXPECT_TRUE(fork.covers(arm({to({1}), from({0})})));
  EXPECT_FALSE(fork.covers(arm({to({1}), to({0})})));
  EXPECT_FALSE(fork.covers(arm({})));
  EXPECT_TRUE(fork_of({{from({0})}, {}}).covers(arm({to({0})})));
  EXPECT_TRUE(fork_of({{from({0})}, {}}).covers(arm({})));
}

TEST(ArmCondition, CoversStricterConditions) {
  EXPECT_TRUE(from({0, 1}).covers(from({1})));
  EXPECT_FALSE(from({1}).covers(from({0, 1})));
  EXPECT_TRUE(from({1}).covers({{1}, {2}}));
  EXPECT_FALSE(ArmCondition({{1}, {2}}).covers(from({1})));
  EXPECT_FALSE(to({1}).covers(from({1})));
}

TEST(Fork, FindsTheArmOfAFunction) {
  std::vector<Fork> forks{fork_of({{from({0})}, {from({1})}})};
  forks[0].first = 1;
  forks[0].last = 4;
  forks[0].arms[0].first = 1;
  forks[0].arms[0].last = 3;
  forks[0].arms[1].first = 3;
  forks[0].arms[1].last = 4;
  EXPECT_EQ(arm_of(forks, 0), std::nullopt);
  EXPECT_EQ(arm_of(forks, 2), (ArmPlace{0, 0}));
  EXPECT_EQ(arm_of(forks, 3), (ArmPlace{0, 1}));
  EXPECT_EQ(arm_of(forks, 4), std::nullopt);
  EXPECT_EQ(section_of(forks, 1), section_of(forks, 2)) << "one arm";
  EXPECT_LT(section_of(forks, 0), section_of(forks, 1));
  EXPECT_LT(section_of(forks, 2), section_of(forks, 3)) << "another arm";
  EXPECT_LT(section_of(forks, 3), section_of(forks, 4)) << "after the fork";
}

TEST(Fork, MultipliesThePathsThroughAChain) {
  const std::vector<Fork> forks{fork_of({{from({0})}, {}}), fork_of({{from({0})}})};
  constexpr std::uint8_t kNone = Fork::kNoArm;
  EXPECT_EQ(paths_of(forks, 100), (std::vector<Path>{{0, 0}, {0, kNone}, {1, 0}, {1, kNone}}));
  EXPECT_EQ(paths_of(forks, 3).size(), 3U);
  EXPECT_EQ(count_paths(forks), 4U);
  EXPECT_EQ(paths_of({}, 100), (std::vector<Path>{{}}));
  EXPECT_EQ(count_paths(std::vector<Fork>(100, forks[0])), SIZE_MAX);
}

}  // namespace
}  // namespace penstock::plan
