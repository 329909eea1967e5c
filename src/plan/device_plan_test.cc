// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "plan/device_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

namespace penstock::plan {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

using function::Processor;

constexpr FieldSet kAddresses{Field::ipv4_src, Field::ipv4_dst};
constexpr FieldSet kTtl{Field::ipv4_ttl, Field::ipv4_checksum};
constexpr FieldSet kVerdict{Field::verdict};

function::NfTraits on_gpu(std::string_view name, FieldSet reads, FieldSet writes) {
  return {.name = name,
          .summary = "",
          .cpu = {reads, writes},
          .devices = {{Processor::gpu, Access{reads, writes}}},
          .finish = {}};
}
function::NfTraits on_cpu(std::string_view name, FieldSet reads, FieldSet writes) {
  return {.name = name, .summary = "", .cpu = {reads, writes}, .devices = {}, .finish = {}};
}

DevicePlan plan_of(const std::vector<function::NfTraits>& chain, WholeFrames whole = WholeFrames::where_needed) {
  auto plan = plan_device(chain, prefer(Processor::gpu, chain), whole);
  EXPECT_TRUE(plan) << to_string(plan.error());
  return plan ? *plan : DevicePlan{};
}

TEST(DevicePlan, SendsHeadersAndReturnsTheChangedFields) {
  const DevicePlan plan =
      plan_of({on_gpu("firewall", kAddresses, kVerdict), on_gpu("router", kAddresses | kTtl, kTtl)});
  ASSERT_EQ(plan.runs.size(), 1U);
  EXPECT_EQ(plan.runs[0].last, 2U);
  ASSERT_EQ(plan.segments.size(), 1U);
  const ring::SegmentShape& segment = plan.segments[0];
  EXPECT_FALSE(segment.frames_up);
  EXPECT_FALSE(segment.frames_down);
  EXPECT_FALSE(segment.verdicts_up);
  EXPECT_EQ(segment.down.count, 2U) << "TTL and checksum";
  EXPECT_EQ(segment.stages.size(), 2U);
  EXPECT_EQ(crossing_bytes(plan, 1518).to_device, 16U + 96);
  EXPECT_EQ(crossing_bytes(plan, 64).to_device, 16U + 64);
  EXPECT_EQ(crossing_bytes(plan, 1518).to_host, 4U + 12) << "verdict; where the headers lie, two fields, one byte over";
}

TEST(DevicePlan, SendsWholeFramesIfAStageReadsPayload) {
  const DevicePlan plan = plan_of({on_gpu("nids", {Field::payload}, kVerdict)});
  EXPECT_TRUE(plan.segments[0].frames_up);
  EXPECT_FALSE(plan.segments[0].frames_down);
  EXPECT_TRUE(plan.segments[0].down.empty());
  EXPECT_EQ(crossing_bytes(plan, 1518).to_device, 16U + 1520);
  EXPECT_EQ(crossing_bytes(plan, 1518).to_host, 4U);
}

TEST(DevicePlan, AStateStageSeesWhatEarlierFunctionsDecideIfItReadsThat) {
  const function::NfTraits filter = on_gpu("filter", kAddresses, kVerdict);
  function::NfTraits detector = on_gpu("nids", {Field::payload}, {});
  function::NfTraits tracker = on_gpu("firewall", kAddresses, kVerdict);
  tracker.state_bytes = 8;
  const auto segments = [&](const function::NfTraits& first) { return plan_of({first, tracker}).segments.size(); };
  EXPECT_EQ(segments(filter), 1U);
  tracker.state_reads = kAddresses | kVerdict;
  EXPECT_EQ(segments(filter), 2U);
  EXPECT_EQ(segments(on_gpu("router", kTtl, kTtl)), 1U);
  EXPECT_EQ(segments(detector), 1U);
  detector.finish = Access{{Field::payload}, kVerdict};
  EXPECT_EQ(segments(detector), 2U) << "its finish stage may drop packets";
  EXPECT_EQ(plan_of({tracker, filter}).segments.size(), 1U);
}

TEST(DevicePlan, AStateStageThatOnlyAsksAboutConnectionsReadsNothingIfAnEarlierFunctionHas) {
  function::NfTraits tracker = on_gpu("firewall", kAddresses, kAddresses | kVerdict);
  tracker.state_bytes = 8;
  tracker.state_reads = kAddresses | kTtl | kVerdict;
  tracker.connections = conntrack::Options();
  const function::NfTraits router = on_gpu("router", kTtl, kTtl);
  EXPECT_EQ(plan_of({router, tracker}).segments.size(), 2U);
  EXPECT_EQ(plan_of({tracker, router, tracker, tracker}).segments.size(), 1U);
  EXPECT_EQ(plan_of({router, tracker, router, tracker}).segments.size(), 2U);
  function::NfTraits other = tracker;
  other.connections.reset();
  EXPECT_EQ(plan_of({tracker, router, other}).segments.size(), 2U) << "it has something else to say";
  EXPECT_EQ(plan_of({other, router, tracker}).segments.size(), 2U);
}

//   ──[ index, headers ]──[ verdicts, flow state ]──▶ device       only the second function takes state
TEST(DevicePlan, SendsFlowStateInTheSegmentOfItsFunction) {
  function::NfTraits inspector = on_gpu("inspector", kAddresses, kVerdict);
  const auto without = plan_of({on_gpu("router", kTtl, kTtl), on_cpu("mark", kTtl, {Field::mark}), inspector});
  inspector.state_bytes = 8;
  const auto with = plan_of({on_gpu("router", kTtl, kTtl), on_cpu("mark", kTtl, {Field::mark}), inspector});
  const ring::SegmentShape& last = with.segments.back();
  EXPECT_EQ(last.stages.back().function, 2U);
  EXPECT_EQ(last.stages.back().state_bytes, 8U);
  EXPECT_EQ(with.segments.front().stages.front().state_bytes, 0U);
  EXPECT_EQ(crossing_bytes(with, 1518).to_device, crossing_bytes(without, 1518).to_device + 8);
  EXPECT_EQ(crossing_bytes(with, 1518).to_host, crossing_bytes(without, 1518).to_host);
  EXPECT_THAT(describe_up(last), HasSubstr("flow state of 8 bytes"));
  EXPECT_THAT(describe_up(without.segments.back()), Not(HasSubstr("state")));
}

TEST(DevicePlan, ReturnsWholeFramesIfTheirShapeChanges) {
  const DevicePlan plan =
      plan_of({on_gpu("tunnel", {Field::ipv4_dst, Field::frame_shape}, {Field::frame_shape, Field::payload})});
  EXPECT_TRUE(plan.segments[0].frames_up) << "what comes back whole must be there whole";
  EXPECT_TRUE(plan.segments[0].frames_down);
  EXPECT_TRUE(plan.segments[0].stages[0].changes_shape);
}

TEST(DevicePlan, BeginsASegmentIfAFinishStageReadsChangedFields) {
  function::NfTraits nids = on_gpu("nids", kTtl | FieldSet{Field::payload}, {});
  nids.finish = Access{kTtl | FieldSet{Field::payload}, kVerdict};
  const function::NfTraits firewall = on_gpu("firewall", kAddresses, kVerdict);
  const function::NfTraits router = on_gpu("router", kAddresses | kTtl, kTtl);
  const function::NfTraits tunnel = on_gpu("tunnel", {Field::frame_shape}, {Field::frame_shape, Field::link_header});
  EXPECT_EQ(plan_of({firewall, nids, router}).segments.size(), 1U) << "it sees what came in";
  const DevicePlan plan = plan_of({router, nids});
  ASSERT_EQ(plan.segments.size(), 2U);
  EXPECT_EQ(plan.segments[0].down.count, 2U) << "TTL and checksum";
  EXPECT_FALSE(plan.segments[1].sends_packets);
  EXPECT_EQ(plan_of({tunnel, nids}).segments.size(), 2U) << "the frames lie elsewhere";
  nids.finish->writes |= {Field::payload};
  EXPECT_EQ(plan_of({router, nids}).segments.size(), 1U) << "it looks at frames that have come back";
}

TEST(DevicePlan, SplitsTheChainWhereAFunctionRunsOnTheCpu) {
  const DevicePlan plan = plan_of({on_cpu("log", kAddresses, {}), on_gpu("router", kAddresses | kTtl, kTtl | kVerdict),
                                   on_cpu("shaper", kTtl | kVerdict, {Field::ipv4_tos, Field::verdict}),
                                   on_gpu("filter", {Field::ipv4_tos, Field::ipv4_ttl}, kVerdict)});
  ASSERT_EQ(plan.runs.size(), 4U);
  EXPECT_EQ(plan.runs[1].processor, Processor::gpu);
  EXPECT_EQ(plan.runs[2].processor, Processor::cpu);
  ASSERT_EQ(plan.segments.size(), 2U);
  EXPECT_TRUE(plan.segments[0].verdicts_up) << "the log had a say";
  EXPECT_EQ(plan.segments[0].down.count, 2U);
  EXPECT_TRUE(plan.segments[1].verdicts_up);
  ASSERT_EQ(plan.segments[1].up.count, 1U);
  EXPECT_EQ(plan.segments[1].up.places[0].field, Field::ipv4_tos) << "the TTL is there still";
  EXPECT_TRUE(plan.segments[1].down.empty());
}

TEST(DevicePlan, AFinishStageThatNeedsNothingFromTheDeviceEndsNoSegment) {
  function::NfTraits firewall = on_gpu("firewall", kAddresses, kVerdict);
  firewall.finish = Access{{Field::frame_shape}, {}};
  firewall.findings_bytes = 4;
  const DevicePlan plan = plan_of({firewall, on_gpu("router", kTtl, kTtl)});
  ASSERT_EQ(plan.segments.size(), 1U);
  EXPECT_EQ(plan.segments[0].stages[0].findings_bytes, 4U);
  EXPECT_EQ(crossing_bytes(plan, 64).to_host, 4U + 4 + 12);

  firewall.finish = Access{{Field::ipv4_tos}, {}};  // changed on the device
  firewall.devices[Processor::gpu]->writes |= {Field::ipv4_tos};
  EXPECT_EQ(plan_of({firewall, on_gpu("router", kTtl, kTtl)}).segments.size(), 2U);
}

TEST(DevicePlan, AFinishStageThatDropsEndsNoSegment) {
  function::NfTraits window = on_gpu("window", kAddresses, kVerdict | FieldSet{Field::frame_shape});
  window.finish = Access{kVerdict | FieldSet{Field::frame_shape}, kVerdict};
  const function::NfTraits filter = on_gpu("filter", kAddresses | kVerdict, kVerdict);
  const DevicePlan plan = plan_of({window, filter});
  ASSERT_EQ(plan.segments.size(), 1U) << "verdicts and lengths come with what was found";
  EXPECT_FALSE(plan.segments[0].verdicts_up);
  EXPECT_EQ(describe_down(plan.segments[0]), "verdicts, lengths, whole frames");
  const DevicePlan later = plan_of({window, on_cpu("log", kAddresses, {}), filter});
  ASSERT_EQ(later.segments.size(), 2U);
  EXPECT_TRUE(later.segments[1].verdicts_up);
}

TEST(DevicePlan, AFinishStageThatChangesFramesEndsItsSegment) {
  function::NfTraits cutter = on_gpu("cutter", {Field::payload}, {Field::payload});
  cutter.finish = Access{{Field::payload, Field::ipv4_tos}, {Field::ipv4_tos}};
  EXPECT_EQ(plan_of({cutter, on_gpu("router", kTtl, kTtl)}).segments.size(), 2U);
}

TEST(DevicePlan, CarriesMetadataInRecords) {
  const DevicePlan plan =
      plan_of({on_gpu("marker", {Field::mark}, {Field::mark}), on_gpu("late", {Field::timestamp}, {})});
  EXPECT_TRUE(plan.segments[0].verdicts_up);
  EXPECT_EQ(plan.segments[0].up.count, 2U);
  EXPECT_EQ(plan.segments[0].down.count, 1U);
}

TEST(DevicePlan, WholeFramesCrossOnRequest) {
  const DevicePlan plan = plan_of({on_gpu("router", kTtl, kTtl)}, WholeFrames::always);
  EXPECT_TRUE(plan.segments[0].frames_up);
  EXPECT_TRUE(plan.segments[0].frames_down);
  EXPECT_TRUE(plan.segments[0].down.empty()) << "the fields come with the frame";
  EXPECT_EQ(crossing_bytes(plan, 1518).to_host, 4U + 1520);
}

TEST(DevicePlan, SendsPacketsForEachFunctionIfTheyAreNotShared) {
  const std::vector<function::NfTraits> chain{on_gpu("firewall", kAddresses, kVerdict), on_cpu("log", kAddresses, {}),
                                              on_gpu("router", kAddresses | kTtl, kTtl),
                                              on_gpu("nids", {Field::payload}, kVerdict)};
  const auto plan = plan_device(chain, prefer(Processor::gpu, chain), WholeFrames::where_needed, Sharing::none);
  ASSERT_TRUE(plan);
  ASSERT_EQ(plan->segments.size(), 3U);
  ASSERT_EQ(plan->runs.size(), 4U);
  EXPECT_EQ(plan->runs[3].segment, 2U);
  for (const ring::SegmentShape& segment : plan->segments) EXPECT_TRUE(segment.sends_packets);
  EXPECT_TRUE(sends_packets_again(*plan));
  EXPECT_FALSE(sends_packets_again(*plan_device(chain, prefer(Processor::gpu, chain))))
      << "shared, they stay on the device";
  EXPECT_FALSE(plan->segments[0].verdicts_up);
  EXPECT_TRUE(plan->segments[1].verdicts_up) << "what the firewall dropped is not to be routed";
  EXPECT_EQ(plan->segments[1].stages[0].function, 2U);
  EXPECT_TRUE(plan->segments[2].frames_up);
  const CrossingBytes bytes = crossing_bytes(*plan, 1518);
  EXPECT_EQ(bytes.to_device, (16U + 96) + (16 + 96 + 4) + (16 + 1520 + 4));
  EXPECT_EQ(bytes.to_host, 4U + (4 + 12) + 4);
}

TEST(DevicePlan, ParsesOnceIfParsingIsSharedAndTheHostChangesNoFrame) {
  function::NfTraits opener = on_gpu("opener", {Field::payload}, {Field::payload});
  opener.finish = Access{{Field::payload}, {Field::payload}};
  const std::vector<function::NfTraits> chain{on_gpu("firewall", kAddresses, kVerdict),
                                              on_gpu("router", kAddresses | kTtl, kTtl),
                                              on_cpu("log", kAddresses, {}),
                                              on_gpu("nids", {Field::payload}, kVerdict),
                                              opener,
                                              on_gpu("filter", kTtl, kVerdict)};
  const auto parses = [&](Sharing sharing) {
    const auto plan = plan_device(chain, prefer(Processor::gpu, chain), WholeFrames::where_needed, sharing);
    EXPECT_TRUE(plan);
    std::vector<bool> all;
    for (const ring::SegmentShape& segment : plan->segments) all.push_back(segment.parses);
    return all;
  };
  EXPECT_EQ(parses(Sharing::parsing), (std::vector<bool>{true, false, true, false, true}));
  EXPECT_EQ(parses(Sharing::stack), (std::vector<bool>(5, true)));
  EXPECT_EQ(parses(Sharing::none), (std::vector<bool>(5, true)));
  const auto by_itself = plan_device(chain, prefer(Processor::gpu, chain), WholeFrames::where_needed, Sharing::none);
  const auto parsed_once =
      plan_device(chain, prefer(Processor::gpu, chain), WholeFrames::where_needed, Sharing::parsing);
  EXPECT_EQ(crossing_bytes(*by_itself, 1518).to_device, crossing_bytes(*parsed_once, 1518).to_device);
  EXPECT_EQ(crossing_bytes(*by_itself, 1518).to_host, crossing_bytes(*parsed_once, 1518).to_host);
}

TEST(DevicePlan, HashesFlowsOnTheDeviceIfAStageThereReadsTheHash) {
  EXPECT_TRUE(plan_of({on_gpu("router", {Field::flow_hash}, {})}).hash_flows);
  EXPECT_FALSE(plan_of({on_cpu("router", {Field::flow_hash}, {}), on_gpu("filter", kTtl, {})}).hash_flows);
}

TEST(DevicePlan, UpdatesTheDeviceBeforeWholeFramesReturn) {
  const DevicePlan plan =
      plan_of({on_gpu("cipher", {Field::payload}, {Field::payload}), on_cpu("router", kTtl | kVerdict, kTtl | kVerdict),
               on_gpu("padder", {Field::payload}, {Field::payload})});
  ASSERT_EQ(plan.segments.size(), 2U);
  EXPECT_TRUE(plan.segments[0].frames_down) << "so that the host can go on without the device";
  EXPECT_TRUE(plan.segments[1].frames_down);
  EXPECT_EQ(plan.segments[1].up.count, 2U) << "TTL and checksum, which no stage there reads";
}

TEST(DevicePlan, SendsPacketsAgainAfterTheHostHasChangedWhatRecordsCannotCarry) {
  const function::NfTraits nids = on_gpu("nids", {Field::payload, Field::mark}, {});
  const function::NfTraits proxy = on_cpu("proxy", {Field::payload}, {Field::payload});
  const function::NfTraits router = on_gpu("router", kAddresses | kTtl, kTtl);
  const DevicePlan plan = plan_of({nids, proxy, nids, router, on_cpu("shaper", {}, {Field::ipv4_tos}), router});
  ASSERT_EQ(plan.segments.size(), 3U);
  EXPECT_FALSE(plan.segments[0].frames_down) << "nothing has changed on the device";
  EXPECT_TRUE(plan.segments[1].sends_packets);
  EXPECT_TRUE(plan.segments[1].frames_up);
  EXPECT_TRUE(plan.segments[1].verdicts_up);
  ASSERT_EQ(plan.segments[1].up.count, 1U) << "packets that are sent again have lost their metadata";
  EXPECT_EQ(plan.segments[1].up.places[0].field, Field::mark);
  EXPECT_FALSE(plan.segments[2].sends_packets) << "they are there";
  EXPECT_EQ(describe_up(plan.segments[1]), "whole frames, verdicts, records of 12 bytes");
  EXPECT_EQ(crossing_bytes(plan, 1518).to_device, (16U + 1520 + 4 + 12) + (16 + 1520 + 4 + 12) + 4);

  const DevicePlan headers = plan_of({nids, proxy, router});
  EXPECT_FALSE(headers.segments[1].sends_packets) << "the router does not read what has changed";
  const DevicePlan longer = plan_of({nids, on_cpu("tunnel", kAddresses, {Field::frame_shape}),
                                     on_gpu("filter", kAddresses | FieldSet{Field::frame_shape}, kVerdict)});
  EXPECT_TRUE(longer.segments[1].sends_packets);
  EXPECT_FALSE(longer.segments[1].frames_up) << "it reads only headers";
}

/// The packets of an arm replace all others on the device.
///
///     nids ─▶ ┬ proxy (CPU) ─▶ nids ─▶ filter ┬ ─▶ filter
///             ├ filter ───────────────────────┤
TEST(DevicePlan, SendsPacketsOfAllArmsAgainOnceOneArmHasSentItsOwn) {
  const function::NfTraits nids = on_gpu("nids", {Field::payload}, {});
  const function::NfTraits proxy = on_cpu("proxy", {Field::payload}, {Field::payload});
  const function::NfTraits filter = on_gpu("filter", kAddresses | kTtl, kVerdict);
  const function::NfTraits router = on_cpu("router", kTtl, kTtl);
  const std::vector<function::NfTraits> chain{nids, proxy, nids, router, filter, filter, filter};
  const std::vector<Fork> forks{{1, 6, {{1, 5, {{{0}, {}}}, ""}, {5, 6, {{{1}, {}}}, ""}}}};
  const auto sends = [&](const Processors& processors) {
    const auto plan = plan_device(chain, processors, WholeFrames::where_needed, Sharing::packets, forks);
    EXPECT_TRUE(plan);
    std::vector<bool> all;
    for (const ring::SegmentShape& segment : plan->segments) all.push_back(segment.sends_packets);
    return all;
  };
  const Processors on_device = prefer(Processor::gpu, chain);
  EXPECT_EQ(sends(on_device), (std::vector<bool>{true, true, false, true, true}));
  Processors processors = on_device;
  processors[2] = Processor::cpu;
  EXPECT_EQ(sends(processors), (std::vector<bool>{true, false, false, false})) << "nobody reads the new payload there";

  const auto plan = plan_device(chain, on_device, WholeFrames::where_needed, Sharing::packets, forks);
  const std::uint8_t first[] = {0}, second[] = {1};
  EXPECT_EQ(crossing_bytes(*plan, 1518, first).to_device,
            (16U + 1520) + (16 + 1520 + 4) + (4 + 12) + (16 + 4) + (16 + 96 + 4));
  EXPECT_EQ(crossing_bytes(*plan, 1518, second).to_device,
            (16U + 1520) + (16 + 4) + (4 + 12) + (16 + 96 + 4) + (16 + 96 + 4));
}

///     firewall ─▶ ┬ nids ─▶ router ─┬ ─▶ filter
///                 ├ log (CPU) ──────┤
TEST(DevicePlan, TransfersPacketsForEachFunctionOfAnArmIfTheyAreNotShared) {
  const std::vector<function::NfTraits> chain{
      on_gpu("firewall", kAddresses, kVerdict), on_gpu("nids", {Field::payload}, kVerdict),
      on_gpu("router", kAddresses | kTtl, kTtl), on_cpu("log", kAddresses, {}), on_gpu("filter", kTtl, kVerdict)};
  const std::vector<Fork> forks{{1, 4, {{1, 3, {{{0}, {}}}, ""}, {3, 4, {}, ""}}}};
  for (const Sharing sharing : {Sharing::none, Sharing::stack, Sharing::parsing}) {
    const auto plan = plan_device(chain, prefer(Processor::gpu, chain), WholeFrames::where_needed, sharing, forks);
    ASSERT_TRUE(plan);
    ASSERT_EQ(plan->runs.size(), 5U);
    EXPECT_EQ(plan->runs[1].fork, 0U);
    const std::vector<std::optional<ArmPlace>> arms{std::nullopt, ArmPlace{0, 0}, ArmPlace{0, 0}, ArmPlace{0, 1},
                                                    std::nullopt};
    for (std::size_t r = 0; r < 5; ++r) EXPECT_EQ(plan->runs[r].arm, arms[r]) << r;
    std::vector<bool> parses;
    for (const ring::SegmentShape& segment : plan->segments) {
      EXPECT_TRUE(segment.sends_packets);
      parses.push_back(segment.parses);
    }
    const bool again = sharing != Sharing::parsing;
    EXPECT_EQ(parses, (std::vector<bool>{true, true, again, true})) << "other packets, except within an arm";
    const std::uint8_t first[] = {0}, second[] = {1};
    EXPECT_EQ(round_trips(*plan, first), 4U);
    EXPECT_EQ(round_trips(*plan, second), 2U);
  }
}

TEST(DevicePlan, RefusesSeveralDevices) {
  function::NfTraits filter = on_gpu("filter", kAddresses, kVerdict);
  const auto other = static_cast<Processor>(2);
  filter.devices[other] = filter.cpu;
  const std::vector<function::NfTraits> chain{filter, filter};
  EXPECT_EQ(plan_device(chain, {other, Processor::cpu})->device, other);
  const auto plan = plan_device(chain, {other, Processor::gpu});
  ASSERT_FALSE(plan);
  EXPECT_THAT(to_string(plan.error()), HasSubstr("the functions of a chain run on several devices"));
}

TEST(DevicePlan, RunsFunctionsWhereTheyArePlaced) {
  const std::vector<function::NfTraits> chain{on_gpu("firewall", kAddresses, kVerdict),
                                              on_gpu("router", kAddresses | kTtl, kTtl),
                                              on_gpu("nids", {Field::payload}, kVerdict)};
  Processors processors{Processor::gpu, Processor::cpu, Processor::gpu};
  const auto plan = plan_device(chain, processors);
  ASSERT_TRUE(plan);
  ASSERT_EQ(plan->runs.size(), 3U);
  EXPECT_EQ(plan->runs[1].processor, Processor::cpu);
  EXPECT_EQ(plan->segments.size(), 2U);
  processors = {Processor::cpu, Processor::cpu, Processor::gpu};
  EXPECT_EQ(plan_device(chain, processors)->runs.size(), 2U);
  EXPECT_EQ(plan_device(chain, processors, WholeFrames::where_needed, Sharing::none)->segments.size(), 1U);
  EXPECT_TRUE(plan_device(chain, prefer(Processor::cpu, chain))->segments.empty());
}

TEST(DevicePlan, ComputesTheRoomThatFramesNeed) {
  function::NfTraits tagger = on_cpu("tagger", {}, {});
  tagger.growth = {4, 0};
  function::NfTraits tunnel = on_gpu("tunnel", {Field::payload}, {Field::frame_shape});
  tunnel.growth = {20, 8};
  const function::NfTraits router = on_gpu("router", kTtl, kTtl);
  const auto rooms = [](const std::vector<function::NfTraits>& chain, Sharing sharing) {
    const auto plan = plan_device(chain, prefer(Processor::gpu, chain), WholeFrames::where_needed, sharing);
    EXPECT_TRUE(plan);
    const FrameRoom in_batches = growth_of(std::span(chain).first(functions_before_device(*plan)));
    const FrameRoom there = room_on_device(chain, *plan);
    return std::array{in_batches.head, in_batches.tail, there.head, there.tail};
  };
  using Rooms = std::array<std::uint32_t, 4>;
  EXPECT_EQ(rooms({tunnel, tagger}, Sharing::packets), (Rooms{0, 0, 20, 8}));
  EXPECT_EQ(rooms({router, tunnel, tagger}, Sharing::packets), (Rooms{0, 0, 20, 8}));
  EXPECT_EQ(rooms({tagger, tagger, router, tunnel}, Sharing::packets), (Rooms{8, 0, 20, 8}));
  EXPECT_EQ(rooms({tunnel, tagger, tunnel}, Sharing::none), (Rooms{0, 0, 40, 16}));
  EXPECT_EQ(rooms({tagger, tagger}, Sharing::packets), (Rooms{8, 0, 0, 0}));
}

TEST(DevicePlan, OfAChainWithoutGpuStagesHasNoSegments) {
  const DevicePlan plan = plan_of({on_cpu("log", kAddresses, {}), on_cpu("proxy", kTtl, kTtl)});
  EXPECT_TRUE(plan.segments.empty());
  ASSERT_EQ(plan.runs.size(), 1U);
  EXPECT_EQ(plan.runs[0].last, 2U);
}

}  // namespace
}  // namespace penstock::plan
