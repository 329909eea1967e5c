// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "plan/transfer_plan.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <array>

namespace penstock::plan {
namespace {

using function::Processor;

constexpr FieldSet kHeaders{Field::ipv4_src, Field::ipv4_dst};
constexpr FieldSet kTtl{Field::ipv4_ttl, Field::ipv4_checksum};

function::NfTraits gpu_nf(std::string_view name, FieldSet reads, FieldSet writes) {
  return {.name = name, .summary = "", .cpu = {reads, writes}, .gpu = Access{reads, writes}, .finish = {}};
}
function::NfTraits cpu_nf(std::string_view name, FieldSet reads, FieldSet writes) {
  return {.name = name, .summary = "", .cpu = {reads, writes}, .gpu = {}, .finish = {}};
}

TransferPlan plan_on_gpu(std::span<const function::NfTraits> chain, std::span<const Fork> forks = {}) {
  return plan_transfers(chain, place_on(Processor::gpu, chain), forks);
}

TEST(TransferPlan, NothingCrossesOnTheCpu) {
  const std::array chain{gpu_nf("firewall", kHeaders, {Field::verdict}), gpu_nf("router", kHeaders, kTtl)};
  const TransferPlan plan = plan_transfers(chain, place_on(Processor::cpu, chain));
  EXPECT_TRUE(plan.to_device().empty());
  EXPECT_TRUE(plan.to_host().empty());
}

TEST(TransferPlan, GpuStagesShareOneCrossing) {
  const std::array chain{gpu_nf("firewall", kHeaders, {Field::verdict}),
                         gpu_nf("router", kHeaders | kTtl, kTtl | FieldSet{Field::verdict})};
  const TransferPlan plan = plan_on_gpu(chain);
  EXPECT_TRUE(plan.stages[0].to_device == (kHeaders | kTtl));
  EXPECT_TRUE(plan.stages[1].to_device.empty());
  EXPECT_TRUE(plan.to_host_at_end == (kTtl | FieldSet{Field::verdict})) << "payloads stay where they are";
}

TEST(TransferPlan, ACpuStageBetweenGpuStagesGetsOnlyWhatItReads) {
  const std::array chain{gpu_nf("ipsec", {Field::payload}, {Field::payload}), cpu_nf("log", kHeaders, {}),
                         cpu_nf("proxy", {Field::payload}, {Field::payload}), gpu_nf("nids", {Field::payload}, {})};
  const TransferPlan plan = plan_on_gpu(chain);
  EXPECT_TRUE(plan.stages[1].to_host.empty());
  EXPECT_TRUE(plan.stages[2].to_host == FieldSet{Field::payload});
  EXPECT_TRUE(plan.stages[3].to_device == FieldSet{Field::payload}) << "the proxy changed it";
  EXPECT_TRUE(plan.to_host_at_end.empty());
}

TEST(TransferPlan, FieldsOverwrittenOnTheDeviceDoNotCross) {
  const std::array chain{gpu_nf("a", {}, {Field::mark}), gpu_nf("b", {Field::mark}, {})};
  const TransferPlan plan = plan_on_gpu(chain);
  EXPECT_TRUE(plan.to_device().empty());
  EXPECT_TRUE(plan.to_host_at_end == FieldSet{Field::mark});
}

TEST(TransferPlan, AFinishStageRunsOnTheCpu) {
  function::NfTraits nids = gpu_nf("nids", {Field::payload}, {Field::mark});
  nids.finish = Access{{Field::mark, Field::payload}, {}};
  const TransferPlan plan = plan_on_gpu(std::span(&nids, 1));
  ASSERT_EQ(plan.stages.size(), 2U);
  EXPECT_TRUE(plan.stages[1].finish);
  EXPECT_EQ(plan.stages[1].processor, Processor::cpu);
  EXPECT_TRUE(plan.stages[1].to_host == FieldSet{Field::mark}) << "the payload is on the host still";
}

TEST(TransferPlan, DropsOfAFinishStageReachTheDeviceWithTheNextSegment) {
  constexpr FieldSet kVerdict{Field::verdict};
  function::NfTraits window = gpu_nf("window", kHeaders | kVerdict, kVerdict | FieldSet{Field::frame_shape});
  window.finish = Access{kVerdict | FieldSet{Field::frame_shape}, kVerdict};
  const function::NfTraits filter = gpu_nf("filter", kHeaders | kVerdict, kVerdict);
  const TransferPlan together = plan_on_gpu(std::array{window, filter});
  EXPECT_TRUE(together.stages[1].to_host == (kVerdict | FieldSet{Field::frame_shape})) << "with what was found";
  EXPECT_FALSE(together.stages[1].divides());
  EXPECT_TRUE(together.stages[2].to_device.empty());
  EXPECT_TRUE(together.to_host_at_end == kVerdict) << "the filter's";
  const TransferPlan apart = plan_on_gpu(std::array{window, cpu_nf("log", kHeaders, {}), filter});
  EXPECT_TRUE(apart.stages[3].to_device == kVerdict);
}

/// An oracle that does not use sets or plans. Each processor has a version number for every field of a packet on this
/// path; writes make new versions, and a read must see the newest. What crosses before a stage of another arm also
/// crosses for this packet if it is the first crossing, except for fields in records.
void expect_never_stale(const TransferPlan& plan, std::span<const Fork> forks = {}, const Path& path = {}) {
  const FieldSet in_records{Field::verdict, Field::mark, Field::timestamp};
  std::array<int, kFieldCount> newest{}, host{}, device{};
  device.fill(-1);
  bool on_device = false;  // a stage has run there
  for (const PlannedStage& stage : plan.stages) {
    const auto arm = arm_of(forks, stage.function);
    const bool passed_by = arm && path[arm->fork] != arm->arm;
    const bool on_gpu = stage.processor == Processor::gpu;
    for (unsigned f = 0; f < kFieldCount; ++f) {
      const auto field = static_cast<Field>(f);
      const bool crosses = !passed_by || (!on_device && !in_records.has(field));
      if (stage.to_device.has(field) && crosses) device[f] = host[f];
      if (passed_by) continue;
      if (stage.to_host.has(field)) host[f] = device[f];
      auto& here = on_gpu ? device : host;
      if (stage.access.reads.has(field)) RC_ASSERT(here[f] == newest[f]);
      if (stage.access.writes.has(field)) here[f] = ++newest[f];
    }
    on_device |= on_gpu;
    // Packets of all arms return where an arm is chosen or left.
    for (unsigned f = 0; f < kFieldCount && !passed_by; ++f) {
      if (stage.to_host_after.has(static_cast<Field>(f))) host[f] = device[f];
    }
  }
  for (unsigned f = 0; f < kFieldCount; ++f) {
    if (plan.to_host_at_end.has(static_cast<Field>(f))) host[f] = device[f];
    RC_ASSERT(host[f] == newest[f]);
  }
}

FieldSet random_fields() {
  FieldSet set;
  for (int n = *rc::gen::inRange(0, 5); n > 0; --n) set |= {static_cast<Field>(*rc::gen::inRange(0U, kFieldCount))};
  return set;
}

function::NfTraits random_function() {
  const FieldSet reads = random_fields();
  const FieldSet writes = random_fields();
  function::NfTraits nf = *rc::gen::arbitrary<bool>() ? gpu_nf("g", reads, writes) : cpu_nf("c", reads, writes);
  // Its drops need not reach device stages that did not wait for it; see above.
  if (*rc::gen::inRange(0, 4) == 0) nf.finish = Access{random_fields(), random_fields() - FieldSet{Field::verdict}};
  return nf;
}

RC_GTEST_PROP(TransferPlan, NeverReadsStaleDataAndMovesNothingTwice, ()) {
  std::vector<function::NfTraits> chain;
  for (int n = *rc::gen::inRange(1, 7); n > 0; --n) {
    chain.push_back(random_function());
  }
  const TransferPlan plan = plan_on_gpu(chain);
  expect_never_stale(plan);

  // No field crosses if the other processor has it already, or changes it before reading it.
  std::array<int, kFieldCount> writes{}, moved_at_down{}, moved_at_up{};
  moved_at_down.fill(-1);
  moved_at_up.fill(-1);
  for (const PlannedStage& stage : plan.stages) {
    for (unsigned f = 0; f < kFieldCount; ++f) {
      const auto field = static_cast<Field>(f);
      if (stage.to_device.has(field)) RC_ASSERT(std::exchange(moved_at_down[f], writes[f]) != writes[f]);
      if (stage.to_host.has(field)) RC_ASSERT(std::exchange(moved_at_up[f], writes[f]) != writes[f]);
      if (stage.access.writes.has(field)) ++writes[f];
    }
  }
}

RC_GTEST_PROP(TransferPlan, NeverReadsStaleDataOnAnyPathThroughForks, ()) {
  std::vector<function::NfTraits> chain;
  std::vector<Fork> forks;
  const auto add_functions = [&] {
    for (int n = *rc::gen::inRange(0, 3); n > 0; --n) chain.push_back(random_function());
  };
  for (int n = *rc::gen::inRange(1, 4); n > 0; --n) {
    add_functions();
    Fork fork{chain.size(), 0, {}};
    for (int arms = *rc::gen::inRange(1, 4); arms > 0; --arms) {
      Arm arm{chain.size(), 0, {}, ""};
      if (*rc::gen::arbitrary<bool>()) arm.conditions.push_back({{0}, {}});
      add_functions();
      arm.last = chain.size();
      fork.arms.push_back(std::move(arm));
    }
    fork.last = chain.size();
    forks.push_back(std::move(fork));
  }
  add_functions();
  const TransferPlan plan = plan_on_gpu(chain, forks);
  for (const Path& path : paths_of(forks, 1000)) expect_never_stale(plan, forks, path);
}

/// Two arms on the device, and a CPU function in one more arm:
///
///     filter ─▶ ┬ nids ──────────┬ ─▶ router
///               ├ proxy (CPU) ───┤
///               └────────────────┘
TEST(TransferPlan, PlansForEachPathThroughAFork) {
  constexpr FieldSet kVerdict{Field::verdict};
  const std::array chain{gpu_nf("filter", kHeaders | kVerdict, kVerdict), gpu_nf("nids", {Field::payload}, {}),
                         cpu_nf("proxy", {}, {Field::ipv4_ttl}), gpu_nf("router", kTtl | kVerdict, kTtl | kVerdict)};
  Fork fork{1, 3, {{1, 2, {{{0}, {}}}, ""}, {2, 3, {{{1}, {}}}, ""}}};
  const TransferPlan plan = plan_on_gpu(chain, std::span(&fork, 1));
  EXPECT_TRUE(plan.stages[0].to_device == (kHeaders | kTtl | kVerdict | FieldSet{Field::payload}))
      << "for all arms at once: " << to_string(plan.stages[0].to_device);
  EXPECT_TRUE(plan.stages[0].to_host_after == kVerdict) << "the host chooses the arms";
  EXPECT_TRUE(plan.stages[1].to_device.empty()) << "it was there";
  EXPECT_TRUE(plan.stages[3].to_device == (kVerdict | FieldSet{Field::ipv4_ttl}))
      << "the proxy has changed it for some: " << to_string(plan.stages[3].to_device);
  EXPECT_TRUE(plan.to_host_at_end == (kTtl | kVerdict));
}

TEST(TransferPlan, CountsBytesOfANominalFrame) {
  EXPECT_EQ(bytes_of(kHeaders, 64), 8U);
  EXPECT_EQ(bytes_of({Field::payload}, 1514), 1460U);
  FieldSet frame;
  for (unsigned f = 0; f < kByteFieldCount; ++f) frame |= {static_cast<Field>(f)};
  EXPECT_EQ(bytes_of(frame, 1514), 1514U);
  EXPECT_EQ(bytes_of({Field::verdict}, 64), 4U);
}

}  // namespace
}  // namespace penstock::plan
