// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "nf/nids/nids.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <fstream>
#include <functional>
#include <iterator>
#include <nlohmann/json.hpp>
#include <random>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "function/confirming_stage.h"
#include "function/stack_use.h"
#include "function/testing/attached_stage.h"
#include "nf/nids/detect/testing/detection_bed.h"
#include "nf/nids/match/automaton_recipe.h"
#include "nf/nids/match/filter_recipe.h"
#include "nf/nids/match/hashed_filter_build.h"
#include "nf/nids/match/packet_literals.h"
#include "nf/nids/match/rarity.h"
#include "nf/nids/match/scan_tables.h"
#include "nf/nids/match/seam_core.h"
#include "nf/nids/testing/nids_bed.h"
#include "packet/testing/packet_builder.h"
#include "stack/shared_stack.h"

namespace penstock::nids {
namespace {

using function::testing::AttachedStage;
using penstock::testing::packet;
using ::testing::AllOf;
using testing::Frame;
using testing::Frames;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::Json;
using testing::kStart;
using testing::NidsFunction;
using testing::question;
using ::testing::SizeIs;

Literal literal_of(std::string_view text) { return {{text.begin(), text.end()}, false}; }

TEST_F(NidsFunction, FindsAMatchAcrossTheSeamOfAStream) {
  const auto nids = make("alert tcp any any -> any any (content:\"attack at dawn\"; sid:1;)\n");
  testing::Conversation talk;
  std::vector<Frame> frames = talk.handshake();
  for (const std::string& text : {std::string(1280, '.'), std::string(1273, '.') + "attack ", std::string("at dawn")}) {
    frames.push_back(talk.data(0, text));
    frames.push_back(talk.ack(1));
  }
  Frames views(frames);
  AttachedStage stage(*nids);
  stage->process(views.views);
  stage.reset();
  EXPECT_EQ(report_of(*nids)["alerts"], 1);
}

TEST_F(NidsFunction, CountsAlertsByRuleTheMostFirst) {
  const auto nids = make(
      "alert udp any any -> any any (msg:\"seldom\"; content:\"one\"; sid:1;)\n"
      "alert udp any any -> any any (msg:\"never\"; content:\"none\"; sid:2;)\n"
      "alert udp any any -> any any (msg:\"often\"; content:\"o\"; sid:3; rev:2;)\n");
  AttachedStage first(*nids);
  AttachedStage second(*nids);
  Frames some({question("one"), question("two")});
  Frames more({question("four")});
  first->process(some.views);
  second->process(more.views);
  first.reset();
  second.reset();
  const Json report = report_of(*nids);
  EXPECT_EQ(report["alerts"], 4);
  EXPECT_EQ(report["rules"], Json::parse(R"([{"gid": 1, "sid": 3, "rev": 2, "message": "often", "alerts": 3},
                                             {"gid": 1, "sid": 1, "rev": 0, "message": "seldom", "alerts": 1}])"));
  EXPECT_EQ(report["load"]["loaded"], 3);
  EXPECT_EQ(report["stack"]["packets"], 3);
}

TEST_F(NidsFunction, ShowsItsCountsAtBatchBoundaries) {
  const auto nids = make("alert udp any any -> any any (msg:\"any\"; content:\"o\"; sid:1;)\n");
  AttachedStage stage(*nids);
  Frames frames({question("one")});
  stage->process(frames.views);
  EXPECT_EQ(report_of(*nids)["stack"]["packets"], 0);
  stage->begin_batch();
  EXPECT_EQ(report_of(*nids)["stack"]["packets"], 1);
}

TEST_F(NidsFunction, InspectsRemainingStreamsWhenTheStageEndsThenWritesStatistics) {
  report::EventLog eve(eve_path_, report::EventLog::Start::anew);
  ASSERT_TRUE(eve.open());
  eve.begin();
  const auto nids =
      make("alert tcp any any -> any 80 (msg:\"in stream\"; content:\"over two segments\"; sid:1;)\n", {}, &eve);
  AttachedStage stage(*nids);
  const auto segment = [](bool back, std::uint8_t flags, std::uint32_t sequence, std::uint32_t ack,
                          std::string_view text) {
    Frame frame = packet()
                      .eth()
                      .ipv4(back ? "192.0.2.1" : "10.0.0.1", back ? "10.0.0.1" : "192.0.2.1")
                      .tcp(back ? 80 : 4000, back ? 4000 : 80, flags)
                      .payload(text)
                      .bytes();
    for (int i = 0; i < 4; ++i) {
      frame[38 + static_cast<std::size_t>(i)] = static_cast<std::uint8_t>(sequence >> (24 - 8 * i));
      frame[42 + static_cast<std::size_t>(i)] = static_cast<std::uint8_t>(ack >> (24 - 8 * i));
    }
    return penstock::testing::with_right_checksums(std::move(frame));
  };
  Frames frames({segment(false, 2, 100, 0, ""), segment(true, 18, 500, 101, ""), segment(false, 16, 101, 501, ""),
                 segment(false, 24, 101, 501, "over two "), segment(false, 24, 110, 501, "segments"),
                 segment(true, 16, 501, 118, "")});
  stage->process(frames.views);
  EXPECT_EQ(report_of(*nids)["rules"], Json::array());
  stage.reset();
  nids->end_run();
  EXPECT_THAT(eve.close(), IsEmpty());
  const std::vector<Json> all = records();
  ASSERT_THAT(all, SizeIs(2));
  EXPECT_EQ(all[0]["alert"]["signature_id"], 1);
  EXPECT_EQ(all[0]["flow"]["pkts_toserver"], 4);
  EXPECT_EQ(all[1]["event_type"], "stats");
  EXPECT_EQ(all[1]["stats"]["tcp"]["sessions"], 1);
  EXPECT_EQ(all[1]["stats"]["detect"]["alert"], 1);
}

TEST_F(NidsFunction, DropsThePacketAndTheRestOfItsFlowWithActionDrop) {
  const std::string rules = "drop udp any any -> any any (msg:\"bad\"; content:\"bad\"; sid:1;)\n";
  const std::vector<Frame> packets{question("good"), question("bad"), question("good"), question("good", 5000)};
  const auto drops = [&](const std::vector<Given>& given) {
    const auto nids = make(rules, given);
    AttachedStage stage(*nids);
    Frames frames(packets);
    stage->process(frames.views);
    std::vector<bool> dropped;
    for (const PacketView& view : frames.views)
      dropped.push_back(view.packet->verdict == Verdict::drop(DropReason::rule));
    return dropped;
  };
  EXPECT_EQ(drops({{"action", {"drop"}}}), (std::vector<bool>{false, true, true, false}));
  EXPECT_EQ(drops({}), (std::vector<bool>{false, false, false, false}));
}

/// Contents 400 bytes apart, in segments of 100 bytes: the segment that completes the match is the first one dropped.
///
///     segment  0    1    2    3    4    5    6
///             .... FIRST ...  ...  ...  SECOND ...
TEST_F(NidsFunction, DropsInlineTheSegmentThatCompletesAMatchOfSeveral) {
  const auto nids = make(
      "drop tcp any any -> any any (content:\"FIRST\"; content:\"SECOND\"; distance:0; flow:established; sid:1;)\n",
      {{"action", {"drop"}}});
  AttachedStage stage(*nids);
  testing::Conversation talk;
  std::vector<Frame> packets = talk.handshake();
  for (int i = 0; i < 7; ++i) {
    std::string text(100, '.');
    if (i == 1) text.replace(40, 5, "FIRST");
    if (i == 5) text.replace(45, 6, "SECOND");
    packets.push_back(talk.data(0, text));
  }
  Frames frames(packets);
  stage->process(frames.views);
  std::vector<bool> dropped;
  for (std::size_t i = 3; i < packets.size(); ++i) dropped.push_back(!frames.views[i].packet->verdict.alive());
  EXPECT_EQ(dropped, (std::vector<bool>{false, false, false, false, false, true, true}));
}

/// Bytes [from, to) of a frame's IP payload, as a fragment.
Frame fragment_of(const Frame& whole, std::size_t from, std::size_t to, std::uint8_t id) {
  constexpr std::size_t kIp = 14, kPayload = kIp + 20;
  Frame frame = whole;
  const auto at = [&](std::size_t offset) { return frame.begin() + static_cast<std::ptrdiff_t>(kPayload + offset); };
  frame.erase(at(to), frame.end());
  frame.erase(at(0), at(from));
  frame[kIp + 3] = static_cast<std::uint8_t>(20 + to - from);
  frame[kIp + 5] = id;
  frame[kIp + 6] = kPayload + to == whole.size() ? 0 : 0x20;
  frame[kIp + 7] = static_cast<std::uint8_t>(from / 8);
  return penstock::testing::with_right_checksums(std::move(frame));
}

// The host keeps the first fragment. If the last one passed when it is retransmitted, the host would have the datagram.
TEST_F(NidsFunction, DropsRetransmittedFragmentsOfADroppedDatagram) {
  const std::string rules = "drop udp any any -> any any (msg:\"bad\"; content:\"bad\"; sid:1;)\n";
  const Frame bad = question("12345678bad"), good = question("12345678good", 5000);
  const auto nids = make(rules, {{"action", {"drop"}}});
  AttachedStage stage(*nids);
  Frames frames({fragment_of(bad, 0, 16, 1), fragment_of(bad, 16, 19, 1), fragment_of(bad, 16, 19, 1),
                 fragment_of(bad, 0, 16, 1), fragment_of(good, 0, 16, 2), fragment_of(good, 16, 20, 2)});
  stage->process(frames.views);
  std::vector<bool> dropped;
  for (const PacketView& view : frames.views) dropped.push_back(!view.packet->verdict.alive());
  EXPECT_EQ(dropped, (std::vector<bool>{false, true, true, true, false, false}));
}

TEST_F(NidsFunction, ReportsLoadedAndLeftOutRules) {
  const auto nids = make(
      "alert udp any any -> any any (content:\"o\"; sid:1;)\n"
      "alert udp any any -> any any (frobnicate:1; sid:2;)\nalert udp any any -> any any (frobnicate:1; sid:3;)\n");
  EXPECT_THAT(nids->description(), HasSubstr("1 rule (2 left out), "));
  EXPECT_THAT(unsupported_, SizeIs(2));
  EXPECT_EQ(unsupported_[0].place.line, 2U);
  EXPECT_THAT(nids->load_table(), AllOf(HasSubstr("1 rule loaded, 2 left out"), HasSubstr("frobnicate")));
  nlohmann::ordered_json load;
  nids->load_report(load);
  EXPECT_EQ(load["left_out"], 2);
  ASSERT_THAT(load["reasons"], SizeIs(1));
  EXPECT_EQ(load["reasons"][0]["rules"], 2);
}

TEST_F(NidsFunction, DropsPacketsWithoutMemoryAndReportsIt) {
  const std::string rules = "alert tcp any any -> any any (content:\"attack\"; sid:1;)\n";
  std::vector<Frame> segments;  // of more connections than fit, with a hole before each
  for (std::uint16_t port = 1; port < 2000; ++port) {
    testing::Conversation talk(port);
    for (const Frame& frame : talk.handshake()) segments.push_back(frame);
    talk.skip(0, 1);
    segments.push_back(talk.data(0, "attack"));
  }
  for (const auto& [action, when_full, drops] :
       {std::tuple{"alert", "auto", false}, {"drop", "auto", true}, {"drop", "drop", true}, {"drop", "pass", false}}) {
    report::EventLog log(eve_path_, report::EventLog::Start::anew);
    ASSERT_TRUE(log.open());
    log.begin();
    const auto nids =
        make(rules, {{"action", {action}}, {"when_full", {when_full}}, {"stream_memory", {"1MiB"}}}, &log);
    Frames frames(segments);
    AttachedStage stage(*nids);
    stage->process(frames.views);
    stage.reset();
    nids->end_run();
    EXPECT_THAT(log.close(), IsEmpty());
    const auto dropped = static_cast<std::uint64_t>(std::ranges::count_if(frames.views, [](const PacketView& view) {
      return view.packet->verdict == Verdict::drop(DropReason::stream_memory);
    }));
    const Json report = report_of(*nids);
    EXPECT_GT(report["stack"]["stream_memory_refused"], 100);
    EXPECT_EQ(report["inspection"]["dropped_by"]["stream_memory"], dropped);
    EXPECT_EQ(dropped, drops ? report["stack"]["stream_memory_refused"].get<std::uint64_t>() : 0);
    const Json stats = records().back()["stats"];
    EXPECT_EQ(stats.contains("ips"), std::string_view(action) == "drop");
    EXPECT_EQ(stats.value(Json::json_pointer("/ips/drop_reason/stream_memcap"), std::uint64_t{0}), dropped);
  }
}

// It cannot inspect what it cannot decode. Frames that carry no IP by design are never dropped.
TEST_F(NidsFunction, DropsUndecodableFramesOnRequestAndAlwaysCountsThem) {
  const std::string rules = "alert udp any any -> any any (content:\"bad\"; sid:1;)\n";
  const Frame good = question("good");
  Frame unknown = good, lldp = good;
  unknown[12] = 0x12;  // the EtherType
  lldp[12] = 0x88;
  lldp[13] = 0xcc;
  auto tagged = packet().eth();
  for (std::uint16_t i = 0; i < 9; ++i) tagged.vlan(i);
  const std::vector<Frame> packets{good, unknown, lldp, tagged.ipv4("10.0.0.1", "10.0.0.2").udp(1, 2).bytes()};
  for (const auto& [undecodable, tracking] : {std::pair{"pass", "streams"}, {"drop", "streams"}, {"drop", "packets"}}) {
    report::EventLog log(eve_path_, report::EventLog::Start::anew);
    ASSERT_TRUE(log.open());
    log.begin();
    const auto nids =
        make(rules, {{"action", {"drop"}}, {"undecodable", {undecodable}}, {"tracking", {tracking}}}, &log);
    Frames frames(packets);
    AttachedStage stage(*nids);
    stage->process(frames.views);
    stage.reset();
    nids->end_run();
    EXPECT_THAT(log.close(), IsEmpty());
    std::vector<bool> dropped;
    for (const PacketView& view : frames.views) {
      dropped.push_back(view.packet->verdict == Verdict::drop(DropReason::undecodable));
    }
    const bool drops = std::string_view(undecodable) == "drop";
    EXPECT_EQ(dropped, (std::vector<bool>{false, drops, false, drops}));
    EXPECT_EQ(report_of(*nids)["stack"]["undecodable"], 2);
    EXPECT_EQ(report_of(*nids)["inspection"]["dropped_by"]["undecodable"], drops ? 2 : 0);
    EXPECT_EQ(records().back()["stats"]["ips"]["drop_reason"]["decode_error"], drops ? 2 : 0);
  }
}

/// A GPU that found no literals in a frame has not decoded it.
TEST_F(NidsFunction, DecodesFramesClearedByAGpuToDropUndecodableOnes) {
  const auto nids = make("alert udp any any -> any any (content:\"bad\"; sid:1;)\n",
                         {{"action", {"drop"}}, {"undecodable", {"drop"}}, {"tracking", {"packets"}}});
  Frame vxlan = packet().eth().ipv4("10.0.0.1", "10.0.0.2").udp(1, 4789).payload(std::string(40, 8)).bytes();
  Frames frames({vxlan});
  AttachedStage stage(*nids);
  auto finish = nids->make_finish_stage(*stage);
  PacketLiterals found;
  found.flags = PacketLiterals::kScanned | PacketLiterals::kPayload;
  const std::byte* const findings = reinterpret_cast<const std::byte*>(&found);
  finish->finish(frames.views, {&findings, 1});
  EXPECT_EQ(frames.views[0].packet->verdict, Verdict::drop(DropReason::undecodable));
}

/// Interleaved conversations: segments in and out of order, repeated with the same or other bytes.
std::vector<Frame> tangled_conversations(std::mt19937& random) {
  std::vector<testing::Conversation> talks;
  std::vector<Frame> frames;
  for (std::uint16_t port = 4000; port < 4012; ++port) {
    talks.emplace_back(port);
    for (Frame& frame : talks.back().handshake()) frames.push_back(std::move(frame));
  }
  const std::array<std::string, 5> texts{"GET /one", " two HTTP/1.1", std::string(900, 'x'), "one", "two three"};
  for (int i = 0; i < 3000; ++i) {
    testing::Conversation& talk = talks[random() % talks.size()];
    const unsigned side = random() % 4 == 0 ? 1 : 0;
    const std::string& text = texts[random() % texts.size()];
    switch (random() % 8) {
      case 0: talk.skip(side, static_cast<std::uint32_t>(random() % 8)); break;
      case 1: frames.push_back(talk.data_at(side, -static_cast<std::int64_t>(random() % 40), text)); break;
      case 2: frames.push_back(talk.data_at(side, static_cast<std::int64_t>(random() % 40), text)); break;
      case 3: frames.push_back(question(text, static_cast<std::uint16_t>(random() % 5 + 5000))); break;
      case 4: frames.push_back(talk.ack(1 - side)); break;
      default: frames.push_back(talk.data(side, text)); break;
    }
  }
  return frames;
}

// Each function writes the same alerts, byte for byte, whether or not it shares its tracker. For contested bytes, this
// only holds for functions whose longest contents are equally long: the tracker keeps the bytes of a stream for the
// longest one, and compares new segments with everything that it keeps.
TEST_F(NidsFunction, FindsTheSameWithASharedTracker) {
  const std::string long_rule = "alert tcp any any -> any any (content:\"" + std::string(1000, 'x') + "\"; sid:4;)\n";
  std::array<std::string, 2> rules{
      "alert tcp any any -> any any (content:\"one two\"; sid:1;)\n"
      "alert tcp any any -> any any (content:\"one\"; flowbits:isnotset,seen; flowbits:set,seen; sid:2;)\n"
      "alert udp any any -> any any (content:\"two\"; threshold:type both, track by_src, count 3, seconds 1; sid:3;)\n",
      "alert tcp any any -> any any (content:\"two\"; flowbits:isset,other; sid:5;)\n"
      "alert tcp any any -> any any (content:\"three\"; flowbits:set,other; flowbits:noalert; sid:6;)\n"};
  rules[1] += long_rule;
  for (const bool contested : {false, true}) {
    if (contested) rules[0] += long_rule;
    const std::vector<Given> given{{"overlaps", {contested ? "all" : "policy"}}};
    const auto alerts = [&](const std::vector<std::vector<unsigned>>& stacks) {
      std::array<std::string, 2> paths{eve_path_ + ".0", eve_path_ + ".1"}, texts;
      std::array<std::unique_ptr<report::EventLog>, 2> logs;
      std::array<std::unique_ptr<function::NetworkFunction>, 2> functions;
      for (std::size_t f = 0; f < 2; ++f) {
        logs[f] = std::make_unique<report::EventLog>(paths[f], report::EventLog::Start::anew);
        EXPECT_TRUE(logs[f]->open());
        logs[f]->begin();
        functions[f] = make(rules[f], given, logs[f].get());
      }
      for (const std::vector<unsigned>& together : stacks) {
        std::mt19937 random(3);
        Frames frames(tangled_conversations(random));
        std::vector<stack::StackUse> uses;
        for (const unsigned f : together) uses.push_back(function::stack_use(*functions[f]));
        stack::SharedStack stack(FieldSet{}, uses, 0);
        std::vector<std::unique_ptr<function::CpuStage>> stages;
        for (const unsigned f : together) {
          stages.push_back(functions[f]->make_cpu_stage());
          stages.back()->attach(*stack.attachment(stages.size() - 1));
        }
        for (std::size_t i = 0; i < frames.views.size(); i += 100) {
          const auto burst = std::span(frames.views).subspan(i, std::min<std::size_t>(100, frames.views.size() - i));
          for (const auto& stage : stages) stage->process(burst);
        }
        stack.finish();
      }
      for (std::size_t f = 0; f < 2; ++f) {
        EXPECT_THAT(logs[f]->close(), IsEmpty());
        std::ifstream lines(paths[f]);
        texts[f].assign(std::istreambuf_iterator<char>(lines), {});
        std::remove(paths[f].c_str());
      }
      return texts;
    };
    const auto alone = alerts({{0}, {1}});
    const auto shared = alerts({{0, 1}});
    for (std::size_t f = 0; f < 2; ++f) {
      EXPECT_GT(std::ranges::count(alone[f], '\n'), 20) << f;
      EXPECT_TRUE(shared[f] == alone[f]) << f;
    }
  }
}

/*  UDP 50000 → 5555 │ VXLAN │ Ethernet │ IPv4 │ TCP to port 80 │ "bad"  */
TEST_F(NidsFunction, DecodesTunnelsAtTheGivenPorts) {
  const std::string rules = "alert tcp any any -> any 80 (flags:S; content:\"bad\"; sid:1;)\n";
  const Frame inner = packet().eth().ipv4("10.1.0.1", "10.1.0.2").tcp(4000, 80, TcpHeader::kSyn).payload("bad").bytes();
  const auto alerts = [&](std::uint16_t port, const std::vector<Given>& given) {
    const auto nids = make(rules, given);
    Frames frames({packet()
                       .eth()
                       .ipv4("10.0.0.1", "10.0.0.2")
                       .udp(50000, port)
                       .raw({8, 0, 0, 0, 0, 0, 7, 0})
                       .raw(inner)
                       .bytes()});
    AttachedStage(*nids).process(frames.views);
    return report_of(*nids)["alerts"];
  };
  EXPECT_EQ(alerts(4789, {}), 1);
  EXPECT_EQ(alerts(8472, {}), 1);
  EXPECT_EQ(alerts(5555, {}), 0);
  EXPECT_EQ(alerts(5555, {{"vxlan_ports", {"4789,5555"}}}), 1);
  EXPECT_EQ(alerts(4789, {{"vxlan_ports", {"0"}}}), 0);
}

// The defaults are the usual ones; users with connections that are idle for longer can change them.
TEST_F(NidsFunction, FollowsConnectionsUntilTheirTimeoutAndCountsExpiredOnes) {
  const std::string rules = "alert tcp any any -> any any (flow:established; content:\"attack\"; sid:1;)\n";
  testing::Conversation silent(1), slow(2);
  std::vector<Frame> packets = silent.handshake();
  for (const Frame& frame : slow.handshake()) packets.push_back(frame);
  packets.push_back(slow.data(0, "attack"));
  packets.push_back(silent.data(0, "attack"));
  const std::vector<std::uint64_t> seconds{0, 0, 0, 1, 1, 71, 71, 700};
  const auto report = [&](const std::vector<Given>& given) {
    const auto nids = make(rules, given);
    Frames frames(packets);
    for (std::size_t i = 0; i < packets.size(); ++i) {
      frames.views[i].packet->timestamp_ns = kStart + seconds[i] * 1'000'000'000;
    }
    AttachedStage(*nids).process(frames.views);
    return report_of(*nids);
  };
  const Json usual = report({});
  EXPECT_EQ(usual["alerts"], 0);
  EXPECT_EQ(usual["stack"]["tcp_idle_timeouts"], 1);
  EXPECT_EQ(usual["stack"]["handshake_timeouts"], 1);
  EXPECT_EQ(usual["stack"]["tcp_unknown_connection"], 3);
  const Json longer = report({{"tcp_idle_timeout", {"2h"}}, {"handshake_timeout", {"90500ms"}}});
  EXPECT_EQ(longer["alerts"], 2);
  EXPECT_EQ(longer["stack"]["tcp_idle_timeouts"], 0);
  EXPECT_EQ(longer["stack"]["handshake_timeouts"], 0);
  EXPECT_EQ(longer["stack"]["tcp_unknown_connection"], 0);
}

TEST_F(NidsFunction, WaitsForFragmentsUntilTheirTimeout) {
  const Frame whole = question("12345678bad");
  for (const auto& [timeout, reassembled] : {std::pair{"10s", 0}, {"30s", 1}}) {
    const auto nids =
        make("alert udp any any -> any any (content:\"bad\"; sid:1;)\n", {{"fragment_timeout", {timeout}}});
    Frames frames({fragment_of(whole, 0, 16, 1), fragment_of(whole, 16, 19, 1)});
    frames.views[1].packet->timestamp_ns = kStart + 20'000'000'000;
    AttachedStage(*nids).process(frames.views);
    EXPECT_EQ(report_of(*nids)["stack"]["reassembled"], reassembled);
  }
}

TEST_F(NidsFunction, RefusesWrongParameters) {
  const std::string rules = "alert udp any any -> any any (content:\"o\"; sid:1;)\n";
  EXPECT_THAT(refusal(rules, {{"vars", {"=10.0.0.0/8"}}}),
              HasSubstr("chain.yaml:2:1: vars: a variable without a name"));
  EXPECT_THAT(refusal(rules, {{"vars", {"HOME_NET=300.0.0.0"}}}), HasSubstr("300.0.0.0"));
  EXPECT_THAT(refusal(rules, {{"matcher", {"guess"}}}), HasSubstr("matcher: wrong value"));
  EXPECT_THAT(refusal(rules, {{"flow_memory", {"1KiB"}}}), HasSubstr("flow_memory: wrong value"));
  EXPECT_THAT(refusal(rules, {{"when_full", {"drop"}}}), HasSubstr("chain.yaml:2:1: when_full: nothing is dropped"));
  EXPECT_THAT(refusal(rules, {{"tcp_idle_timeout", {"10ms"}}}), HasSubstr("tcp_idle_timeout: wrong value"));
  EXPECT_THAT(refusal(rules, {{"undecodable", {"drop"}}}),
              HasSubstr("chain.yaml:2:1: undecodable: nothing is dropped"));
  EXPECT_THAT(refusal(rules, {{"vxlan_ports", {"1,2,3,4,5,6,7,8,9"}}}),
              HasSubstr("chain.yaml:2:1: vxlan_ports: too many ports: found 9, expected at most 8"));
  EXPECT_THAT(refusal(rules, {{"flow_state", {"automaton"}}, {"tracking", {"packets"}}}),
              HasSubstr("chain.yaml:2:1: flow_state: packets are inspected one by one, without flows"));
  EXPECT_THAT(refusal(rules, {{"flow_state", {"automaton"}}, {"gpu_matcher", {"aho_corasick"}}}),
              HasSubstr("chain.yaml:2:1: flow_state: this search on the GPU takes no state"));
  EXPECT_THAT(refusal(rules, {{"classification", {"/nowhere.config"}}}), HasSubstr("/nowhere.config"));
  EXPECT_THAT(refusal("", {}), HasSubstr("chain.yaml:1:1: no rule could be loaded: found no rules"));
  EXPECT_THAT(refusal(rules + "alert udp any any -> any any (frobnicate:1; sid:2;)\n", {{"strict", {"true"}}}),
              HasSubstr("frobnicate"));
}

TEST_F(NidsFunction, RefusesAPolicyThatHasMistakes) {
  const std::string whole = "drop udp any any -> any any (content:\"needle\"; sid:1;)\n";
  const std::string cut = whole + "drop udp any any -> any any (content:\"hay";
  EXPECT_THAT(refusal(cut, {{"action", {"drop"}}}),
              AllOf(HasSubstr("rules:2:"), HasSubstr("chain.yaml:2:1: refused because of 1 rule with mistakes")));
  EXPECT_NE(make(cut, {}), nullptr) << "it only alerts";
  const std::string unsupported = whole + "drop tcp any any -> any any (tls.cert_subject; content:\"hay\"; sid:2;)\n";
  EXPECT_NE(make(unsupported, {{"action", {"drop"}}}), nullptr);
}

TEST_F(NidsFunction, FindsTheSameWithEveryMatcher) {
  const std::string rules =
      "alert udp any any -> any any (content:\"needle\"; nocase; sid:1;)\n"
      "alert udp any any -> any any (content:\"hay\"; content:!\"needle\"; sid:2;)\n";
  for (const char* matcher : {"auto", "hyperscan", "aho_corasick", "hashed_filter"}) {
    const auto nids = make(rules, {{"matcher", {matcher}}});
    Frames frames({question("a Needle"), question("hay", 1), question("hay and needle", 2)});
    AttachedStage(*nids).process(frames.views);
    const Json report = report_of(*nids);
    EXPECT_EQ(report["rules"][0]["sid"], 1) << matcher;
    EXPECT_EQ(report["rules"][0]["alerts"], 2) << matcher;
    EXPECT_EQ(report["rules"][1]["alerts"], 1) << matcher;
  }
}

TEST_F(NidsFunction, HasARecipeOfItsStageWhateverTheMatcher) {
  const std::string rules = "alert tcp any any -> any any (content:\"attack at dawn\"; sid:1;)\n";
  const auto needs_of = [&](const function::RemoteKernel& kernel, const std::vector<Given>& with) {
    const auto nids = make(rules, with);
    const auto recipe = nids->stage_recipe(function::Processor::gpu);
    if (!recipe || recipe->kernel != kernel.name || !kernel.check(*recipe)) {
      ADD_FAILURE() << kernel.name;
      return function::StageNeeds{};
    }
    const function::StageNeeds needs = kernel.needs(*recipe);
    EXPECT_EQ(needs.findings_bytes, nids->traits().findings_bytes);
    EXPECT_EQ(needs.state_bytes, nids->traits().state_bytes);
    return needs;
  };
  EXPECT_EQ(needs_of(remote_filter_kernel(), {}).state_bytes, 0U);
  EXPECT_EQ(needs_of(remote_filter_kernel(), {{"flow_state", {"automaton"}}}).state_bytes, sizeof(FlowState));
  EXPECT_EQ(needs_of(remote_kernel(), {{"gpu_matcher", {"aho_corasick"}}}).state_bytes, 0U);
}

//   client   "....attack a" │ "t dawn...."      the device finds the cut literal in the second segment, by its state
TEST_F(NidsFunction, FindsTheSameWithTheStateOfFlows) {
  const std::string rules =
      "alert tcp any any -> any any (content:\"attack at dawn\"; sid:1;)\n"
      "alert tcp any any -> any any (content:\"a dawn chorus\"; sid:2;)\n";
  testing::Conversation talk;
  std::vector<Frame> packets = talk.handshake();
  for (int i = 0; i < 40; ++i) {
    const std::string filling(900, '.');
    packets.push_back(talk.data(0, i % 4 == 1 ? filling + "attack a" : i % 4 == 2 ? "t dawn" + filling : filling));
    if (i % 3 == 0) packets.push_back(talk.ack(1));
  }
  Frames frames(packets);
  const auto tables = build_scan_tables(
      cut_literals(std::array{literal_of("attack at dawn"), literal_of("a dawn chorus")}), ScanEngine::hashed_filter);
  const HashedFilterView view = std::get<HashedFilterTables>(tables->engine).view();
  const auto results = [&](const std::string& flow_state) {
    const auto nids = make(rules, {{"flow_state", {flow_state}}});
    EXPECT_EQ(nids->traits().state_bytes, flow_state == "none" ? 0U : 8U);
    AttachedStage stage(*nids);
    const auto finish = nids->make_finish_stage(*stage);
    const auto state_stage = nids->make_state_stage(*stage);
    EXPECT_EQ(state_stage != nullptr, flow_state != "none");
    std::vector<FlowState> states(packets.size());
    std::vector<PacketLiterals> found(packets.size());
    std::vector<std::byte*> to_fill;
    for (FlowState& state : states) to_fill.push_back(reinterpret_cast<std::byte*>(&state));
    if (state_stage) state_stage->fill(frames.views, to_fill);
    std::vector<const std::byte*> given(to_fill.begin(), to_fill.end()), findings;
    for (std::size_t i = 0; i < found.size(); ++i) {
      const PacketView packet = frames.views[i];
      const std::uint8_t* const begin = packet.frame + packet.layout().payload_offset;
      const std::uint8_t* const end = packet.frame + packet.layout().end;
      found[i].flags = PacketLiterals::kScanned | PacketLiterals::kPayload;
      scan_filtered<true>(view, begin, end, [&](std::uint32_t literal) { found[i].add(literal); });
      scan_seam(view, states[i], begin, end, found[i]);
      findings.push_back(reinterpret_cast<const std::byte*>(&found[i]));
    }
    if (state_stage) finish->take_states(given);
    finish->finish(frames.views, findings);
    stage.reset();
    return report_of(*nids);
  };
  const Json without = results("none"), with = results("automaton");
  EXPECT_EQ(without["alerts"], 10);
  EXPECT_EQ(with["alerts"], 10);
  EXPECT_FALSE(without["inspection"].contains("flow_states"));
  EXPECT_EQ(with["rules"], without["rules"]);
  EXPECT_EQ(with["inspection"]["flow_states"], 39) << "all but the first segment with data";
  EXPECT_GT(with["inspection"]["seams_known"], 30);
}

/// What a chain's process hands over, which may lie.
TEST_F(NidsFunction, TakesOnlyFindingsThatADeviceCanHaveLeft) {
  const auto nids = make(
      "alert udp any any -> any any (content:\"one\"; sid:1;)\n"
      "alert udp any any -> any any (content:\"two\"; sid:2;)\n");
  AttachedStage stage(*nids);
  const auto finish = nids->make_finish_stage(*stage);
  const auto* const confirming = dynamic_cast<function::ConfirmingStage*>(finish.get());
  ASSERT_NE(confirming, nullptr);
  const auto can_be = [&](const std::function<void(PacketLiterals&)>& change) {
    PacketLiterals found;
    found.flags = PacketLiterals::kScanned;
    change(found);
    return confirming->can_be(reinterpret_cast<const std::byte*>(&found));
  };
  EXPECT_TRUE(can_be([](PacketLiterals&) {}));
  EXPECT_TRUE(can_be([](PacketLiterals& found) { found.add(0), found.add(1); }));
  EXPECT_FALSE(can_be([](PacketLiterals& found) { found.add(2); })) << "there are two literals";
  EXPECT_FALSE(can_be([](PacketLiterals& found) { found.add(0xfffffff0); }));
  EXPECT_FALSE(can_be([](PacketLiterals& found) { found.count = 1; })) << "none";
  EXPECT_FALSE(can_be([](PacketLiterals& found) {
    found.count = PacketLiterals::kMost + 1;
    std::ranges::fill(found.literals, 0);
  }));
  EXPECT_FALSE(can_be([](PacketLiterals& found) { found.count = 0xffff; }));
}

TEST_F(NidsFunction, TellsWhichFindingsAreClear) {
  const std::string by_literals = "alert udp any any -> any any (content:\"one\"; sid:1;)\n";
  const auto is_clear = [&](const std::string& rules, const std::vector<Given>& given, const PacketLiterals& found) {
    const auto nids = make(rules, given);
    const auto& confirming = dynamic_cast<const function::ConfirmingFunction&>(*nids);
    return confirming.clear_findings()->has(reinterpret_cast<const std::byte*>(&found));
  };
  const std::vector<Given> by_themselves{{"tracking", {"packets"}}};
  for (std::uint16_t flags = 0; flags < 16; ++flags) {
    PacketLiterals found;
    found.flags = flags;
    const bool is_complete = (flags & PacketLiterals::kScanned) != 0 && (flags & PacketLiterals::kTooMany) == 0;
    const bool is_payload = (flags & PacketLiterals::kPayload) != 0;
    EXPECT_EQ(is_clear(by_literals, by_themselves, found), is_complete && is_payload) << flags;
    EXPECT_FALSE(is_clear(by_literals, {}, found)) << "streams need all packets";
    EXPECT_FALSE(is_clear(by_literals + "alert udp any any -> any any (dsize:3; sid:2;)\n", by_themselves, found));
    found.add(0);
    EXPECT_FALSE(is_clear(by_literals, by_themselves, found));
  }
}

TEST_F(NidsFunction, WaitsOnlyForPacketsNotClearedByAGpuAndFindsTheSame) {
  const std::string rules = "alert udp any any -> any any (msg:\"needle\"; content:\"needle\"; sid:1;)\n";
  std::vector<Frame> packets;
  for (unsigned i = 0; i < 100; ++i) {
    packets.push_back(question(i % 9 == 4 ? "a needle" : "hay", static_cast<std::uint16_t>(4000 + i)));
  }
  Frames frames(packets);
  // Not scanned, or with more literals than reported: the worker's own scan finds them.
  std::vector<PacketLiterals> found(packets.size());
  for (std::size_t i = 0; i < found.size(); ++i) {
    found[i].flags = PacketLiterals::kScanned | PacketLiterals::kPayload;
    if (i % 9 == 4) found[i].flags |= PacketLiterals::kTooMany;
    if (i % 20 == 19) found[i].flags = 0;
  }
  std::vector<const std::byte*> findings;
  for (const PacketLiterals& literals : found) findings.push_back(reinterpret_cast<const std::byte*>(&literals));

  const auto results = [&](const std::vector<Given>& given, bool chooses, std::size_t most_chosen) {
    report::EventLog eve(eve_path_, report::EventLog::Start::anew);
    EXPECT_TRUE(eve.open());
    eve.begin();
    const auto nids = make(rules, given, &eve);
    AttachedStage stage(*nids);
    auto finish = nids->make_finish_stage(*stage);
    if (chooses) {
      std::vector<std::uint8_t> chosen(packets.size());
      chosen.resize(finish->choose(frames.views, findings, chosen));
      EXPECT_EQ(chosen.size(), most_chosen);
      std::vector<PacketView> views;
      std::vector<const std::byte*> of_views;
      for (const std::uint8_t i : chosen) {
        views.push_back(frames.views[i]);
        of_views.push_back(findings[i]);
      }
      finish->finish(views, of_views);
    } else {
      finish->finish(frames.views, findings);
    }
    finish.reset();
    stage.reset();
    EXPECT_THAT(eve.close(), IsEmpty());
    Json report = report_of(*nids);
    Json result{report["alerts"], report["inspection"], report["stack"]};
    for (const Json& record : records()) result.push_back({record["pcap_cnt"], record["src_port"]});
    return result;
  };
  const Json by_packets = results({{"tracking", {"packets"}}}, false, 0);
  EXPECT_EQ(by_packets[0], 11);
  EXPECT_EQ(by_packets[1]["scanned_on_gpu"], 100);
  EXPECT_EQ(by_packets[1]["clear"], 84) << "11 with needles, 5 that were not scanned";
  EXPECT_EQ(by_packets[3], Json({5, 4004}));
  EXPECT_EQ(results({{"tracking", {"packets"}}}, true, 16), by_packets);
  EXPECT_EQ(results({}, true, 100), results({}, false, 0)) << "flows need all packets";
}

}  // namespace
}  // namespace penstock::nids
