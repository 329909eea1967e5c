// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "plan/transfer_plan.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <array>

namespace penstock::plan {
namespace {

using function::Processor;

/// The GPU, and two that no program knows.
constexpr std::array kDevices{Processor::gpu, static_cast<Processor>(2), static_cast<Processor>(3)};

constexpr FieldSet kHeaders{Field::ipv4_src, Field::ipv4_dst};
constexpr FieldSet kTtl{Field::ipv4_ttl, Field::ipv4_checksum};

function::NfTraits gpu_nf(std::string_view name, FieldSet reads, FieldSet writes) {
  return {.name = name,
          .summary = "",
          .cpu = {reads, writes},
          .devices = {{Processor::gpu, Access{reads, writes}}},
          .finish = {}};
}
function::NfTraits cpu_nf(std::string_view name, FieldSet reads, FieldSet writes) {
  return {.name = name, .summary = "", .cpu = {reads, writes}, .devices = {}, .finish = {}};
}

FieldSet fields_of(std::span<const Crossing> crossings) {
  FieldSet fields;
  for (const Crossing& crossing : crossings) fields |= crossing.fields;
  return fields;
}

TransferPlan plan_on_gpu(std::span<const function::NfTraits> chain, std::span<const Fork> forks = {}) {
  return plan_transfers(chain, prefer(Processor::gpu, chain), forks);
}

TEST(TransferPlan, NothingCrossesOnTheCpu) {
  const std::array chain{gpu_nf("firewall", kHeaders, {Field::verdict}), gpu_nf("router", kHeaders, kTtl)};
  const TransferPlan plan = plan_transfers(chain, prefer(Processor::cpu, chain));
  EXPECT_TRUE(plan.crossings().empty());
}

TEST(TransferPlan, GpuStagesShareOneCrossing) {
  const std::array chain{gpu_nf("firewall", kHeaders, {Field::verdict}),
                         gpu_nf("router", kHeaders | kTtl, kTtl | FieldSet{Field::verdict})};
  const TransferPlan plan = plan_on_gpu(chain);
  EXPECT_TRUE(plan.stages[0].brought() == (kHeaders | kTtl));
  EXPECT_TRUE(plan.stages[1].brought().empty());
  EXPECT_TRUE(fields_of(plan.at_end) == (kTtl | FieldSet{Field::verdict})) << "payloads stay where they are";
}

TEST(TransferPlan, ACpuStageBetweenGpuStagesGetsOnlyWhatItReads) {
  const std::array chain{gpu_nf("ipsec", {Field::payload}, {Field::payload}), cpu_nf("log", kHeaders, {}),
                         cpu_nf("proxy", {Field::payload}, {Field::payload}), gpu_nf("nids", {Field::payload}, {})};
  const TransferPlan plan = plan_on_gpu(chain);
  EXPECT_TRUE(plan.stages[1].brought().empty());
  EXPECT_TRUE(plan.stages[2].brought() == FieldSet{Field::payload});
  EXPECT_TRUE(plan.stages[3].brought() == FieldSet{Field::payload}) << "the proxy changed it";
  EXPECT_TRUE(fields_of(plan.at_end).empty());
}

TEST(TransferPlan, TheNextSegmentBringsAllThatItsStagesRead) {
  const std::array chain{gpu_nf("filter", kHeaders, {}), gpu_nf("proxy", {Field::payload}, {Field::payload}),
                         gpu_nf("filter", kHeaders, {}), gpu_nf("nids", {Field::payload}, {})};
  const TransferPlan plan = plan_transfers(chain, {Processor::gpu, Processor::cpu, Processor::gpu, Processor::gpu});
  EXPECT_TRUE(plan.stages[0].brought() == kHeaders) << "the payload would be stale by then";
  EXPECT_TRUE(plan.stages[2].brought() == FieldSet{Field::payload}) << "though this stage does not read it";
  EXPECT_TRUE(plan.stages[3].before.empty());
}

TEST(TransferPlan, FieldsCrossBetweenDevicesByWayOfTheHost) {
  const Processor other = kDevices[1];
  function::NfTraits nids = gpu_nf("nids", {Field::payload}, {});
  nids.devices[other] = nids.cpu;
  const std::array chain{gpu_nf("cipher", {Field::payload}, {Field::payload}), nids, nids};
  const TransferPlan plan = plan_transfers(chain, {Processor::gpu, other, Processor::gpu});
  ASSERT_EQ(plan.stages[1].before.size(), 2U);
  EXPECT_EQ(plan.stages[1].before[0].from, Processor::gpu);
  EXPECT_EQ(plan.stages[1].before[0].to, Processor::cpu);
  EXPECT_EQ(plan.stages[1].before[1].to, other);
  EXPECT_TRUE(plan.stages[2].before.empty()) << "it is still up to date there";
  EXPECT_TRUE(plan.at_end.empty());
}

TEST(TransferPlan, FieldsOverwrittenOnTheDeviceDoNotCross) {
  const std::array chain{gpu_nf("a", {}, {Field::mark}), gpu_nf("b", {Field::mark}, {})};
  const TransferPlan plan = plan_on_gpu(chain);
  EXPECT_TRUE(plan.stages[0].before.empty() && plan.stages[1].before.empty());
  EXPECT_TRUE(fields_of(plan.at_end) == FieldSet{Field::mark});
}

TEST(TransferPlan, AFinishStageRunsOnTheCpu) {
  function::NfTraits nids = gpu_nf("nids", {Field::payload}, {Field::mark});
  nids.finish = Access{{Field::mark, Field::payload}, {}};
  const TransferPlan plan = plan_on_gpu(std::span(&nids, 1));
  ASSERT_EQ(plan.stages.size(), 2U);
  EXPECT_TRUE(plan.stages[1].finish);
  EXPECT_EQ(plan.stages[1].processor, Processor::cpu);
  EXPECT_TRUE(plan.stages[1].brought() == FieldSet{Field::mark}) << "the payload is on the host still";
}

TEST(TransferPlan, DropsOfAFinishStageReachTheDeviceWithTheNextSegment) {
  constexpr FieldSet kVerdict{Field::verdict};
  function::NfTraits window = gpu_nf("window", kHeaders | kVerdict, kVerdict | FieldSet{Field::frame_shape});
  window.finish = Access{kVerdict | FieldSet{Field::frame_shape}, kVerdict};
  const function::NfTraits filter = gpu_nf("filter", kHeaders | kVerdict, kVerdict);
  const TransferPlan together = plan_on_gpu(std::array{window, filter});
  EXPECT_TRUE(together.stages[1].brought() == (kVerdict | FieldSet{Field::frame_shape})) << "with what was found";
  EXPECT_FALSE(together.stages[1].divides());
  EXPECT_TRUE(together.stages[2].brought().empty());
  EXPECT_TRUE(fields_of(together.at_end) == kVerdict) << "the filter's";
  const TransferPlan apart = plan_on_gpu(std::array{window, cpu_nf("log", kHeaders, {}), filter});
  EXPECT_TRUE(apart.stages[3].brought() == kVerdict);
}

/// An oracle that does not use sets or plans. Each processor has a version number for every field of a packet on this
/// path; writes make new versions, and a read must see the newest. What crosses before a stage of another arm also
/// crosses for this packet if it is the first crossing to that processor, except for fields in records.
void expect_never_stale(const TransferPlan& plan, std::span<const Fork> forks = {}, const Path& path = {}) {
  const FieldSet in_records{Field::verdict, Field::mark, Field::timestamp};
  constexpr std::size_t kProcessors = 4;
  std::array<int, kFieldCount> newest{};
  std::array<std::array<int, kFieldCount>, kProcessors> versions;
  for (auto& of_processor : versions) of_processor.fill(-1);
  versions[0] = newest;
  std::array<bool, kProcessors> has_run{};
  const auto cross = [&](std::span<const Crossing> crossings, auto crosses) {
    for (const Crossing& crossing : crossings) {
      RC_ASSERT((crossing.from == Processor::cpu) != (crossing.to == Processor::cpu));
      const auto from = static_cast<std::size_t>(crossing.from);
      const auto to = static_cast<std::size_t>(crossing.to);
      for (unsigned f = 0; f < kFieldCount; ++f) {
        const auto field = static_cast<Field>(f);
        if (crossing.fields.has(field) && crosses(field, to)) versions[to][f] = versions[from][f];
      }
    }
  };
  for (const PlannedStage& stage : plan.stages) {
    const auto arm = arm_of(forks, stage.function);
    const bool passed_by = arm && path[arm->fork] != arm->arm;
    const auto here = static_cast<std::size_t>(stage.processor);
    cross(stage.before, [&](Field field, std::size_t to) {
      return !passed_by || (to != 0 && !has_run[to] && !in_records.has(field));
    });
    for (unsigned f = 0; f < kFieldCount && !passed_by; ++f) {
      if (stage.access.reads.has(static_cast<Field>(f))) RC_ASSERT(versions[here][f] == newest[f]);
      if (stage.access.writes.has(static_cast<Field>(f))) versions[here][f] = ++newest[f];
    }
    has_run[here] = true;
    // Packets of all arms return where an arm is chosen or left.
    if (!passed_by) cross(stage.after, [](Field, std::size_t) { return true; });
  }
  cross(plan.at_end, [](Field, std::size_t) { return true; });
  for (unsigned f = 0; f < kFieldCount; ++f) RC_ASSERT(versions[0][f] == newest[f]);
}

FieldSet random_fields() {
  FieldSet set;
  for (int n = *rc::gen::inRange(0, 5); n > 0; --n) set |= {static_cast<Field>(*rc::gen::inRange(0U, kFieldCount))};
  return set;
}

function::NfTraits random_function() {
  const FieldSet reads = random_fields();
  const FieldSet writes = random_fields();
  function::NfTraits nf = cpu_nf("f", reads, writes);
  for (const Processor device : kDevices) {
    if (*rc::gen::inRange(0, 4) > 0) nf.devices[device] = Access{reads, writes};
  }
  // Its drops need not reach device stages that did not wait for it; see above.
  if (*rc::gen::inRange(0, 4) == 0) nf.finish = Access{random_fields(), random_fields() - FieldSet{Field::verdict}};
  return nf;
}

/// Each function runs on any processor for which it has a stage.
Processors random_processors(std::span<const function::NfTraits> chain) {
  Processors processors;
  for (const function::NfTraits& nf : chain) {
    std::vector<Processor> possible{Processor::cpu};
    for (const Processor device : kDevices) {
      if (nf.access_on(device) != nullptr) possible.push_back(device);
    }
    processors.push_back(*rc::gen::elementOf(possible));
  }
  return processors;
}

RC_GTEST_PROP(TransferPlan, NeverReadsStaleDataAndMovesNothingTwice, ()) {
  std::vector<function::NfTraits> chain;
  for (int n = *rc::gen::inRange(1, 7); n > 0; --n) {
    chain.push_back(random_function());
  }
  const TransferPlan plan = plan_transfers(chain, random_processors(chain));
  expect_never_stale(plan);

  // No field crosses to a processor that has it already, and none that changes before it is read there.
  std::array<int, kFieldCount> writes{};
  std::array<std::array<int, kFieldCount>, 4> moved_at;
  for (auto& of_processor : moved_at) of_processor.fill(-1);
  for (const PlannedStage& stage : plan.stages) {
    for (const Crossing& crossing : stage.before) {
      for (unsigned f = 0; f < kFieldCount; ++f) {
        if (!crossing.fields.has(static_cast<Field>(f))) continue;
        RC_ASSERT(std::exchange(moved_at[static_cast<std::size_t>(crossing.to)][f], writes[f]) != writes[f]);
      }
    }
    for (unsigned f = 0; f < kFieldCount; ++f) {
      if (stage.access.writes.has(static_cast<Field>(f))) ++writes[f];
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
  const TransferPlan plan = plan_transfers(chain, random_processors(chain), forks);
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
  EXPECT_TRUE(plan.stages[0].brought() == (kHeaders | kTtl | kVerdict | FieldSet{Field::payload}))
      << "for all arms at once: " << to_string(plan.stages[0].brought());
  EXPECT_TRUE(fields_of(plan.stages[0].after) == kVerdict) << "the host chooses the arms";
  EXPECT_TRUE(plan.stages[1].brought().empty()) << "it was there";
  EXPECT_TRUE(plan.stages[3].brought() == (kVerdict | FieldSet{Field::ipv4_ttl}))
      << "the proxy has changed it for some: " << to_string(plan.stages[3].brought());
  EXPECT_TRUE(fields_of(plan.at_end) == (kTtl | kVerdict));
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
