// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The timeline of a chain on a GPU: everything that crossed and nothing else, in order within each stream.

#include "ring/timeline.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "gpu/way.h"
#include "property/conservation_check.h"
#include "ring/trace_events.h"

namespace penstock::on_gpu {
namespace {

class TimelineOfAChain : public property::Chains, public ::testing::WithParamInterface<Way> {
 protected:
  /// Runs a small chain, and fills `spans_`.
  void run_with(const std::vector<std::string>& more) {
    put("rules", "*filter\n:FORWARD ACCEPT [0:0]\n-A FORWARD -p udp -m udp --dport 53 -j DROP\nCOMMIT\n");
    put("routes", "default dev out\n");
    put("chain.yaml",
        fmt::format("ports:\n  in: {{generator: {{packets: {}, size: 512, flows: 64}}}}\n"
                    "  out: {{\"null\": {{}}}}\n"
                    "chain:\n  - firewall: {{rules: rules}}\n  - router: {{routes: routes, ipv4: trie4}}\n"
                    "outputs: {{timeline: timeline.json}}\n",
                    kPackets));
    auto settings = settings_of(GetParam());
    settings.insert(settings.end(), {"run.workers=2", "run.batch.packets=256", "run.queue.bytes=8MiB"});
    settings.insert(settings.end(), more.begin(), more.end());
    config::LoadOptions options;
    options.overrides = overrides_of(settings);
    auto loaded = config::load_chain(folder_ / "chain.yaml", options);
    ASSERT_TRUE(loaded) << penstock::to_string(loaded.error());
    ASSERT_NE(loaded->chain.timeline, nullptr);
    auto result = run::run(loaded->chain, {}, kNever);
    ASSERT_TRUE(result) << penstock::to_string(result.error());
    report_ = report::to_json(result->report);
    expect_all_on_device(report_);
    timeline_ = std::move(loaded->chain.timeline);
    spans_ = timeline_->spans();
  }

  static constexpr std::uint64_t kPackets = 50'000;
  Json report_;
  std::unique_ptr<ring::Timeline> timeline_;
  std::vector<ring::Span> spans_;
};

INSTANTIATE_TEST_SUITE_P(Ways, TimelineOfAChain, ::testing::ValuesIn(kWays),
                         [](const auto& way) { return test_name(way.param); });

TEST_P(TimelineOfAChain, HasAllThatCrossed) {
  ASSERT_NO_FATAL_FAILURE(run_with({}));
  EXPECT_EQ(timeline_->left_out(spans_), 0U);
  std::uint64_t to_device = 0;
  std::uint64_t to_host = 0;
  std::map<std::uint32_t, std::uint64_t> packets;                              // by segment
  std::set<std::tuple<std::uint32_t, std::uint64_t, std::uint32_t>> segments;  // stream, batch, segment
  std::set<ring::Work> works;
  for (const ring::Span& span : spans_) {
    to_device += span.crossed.to_device;
    to_host += span.crossed.to_host;
    if (segments.insert({span.stream, span.batch, span.segment}).second) packets[span.segment] += span.packets;
    works.insert(span.work);
    if (span.work == ring::Work::to_device) {
      EXPECT_EQ(span.crossed.to_host, 0U);
    }
    if (span.work == ring::Work::to_host) {
      EXPECT_EQ(span.crossed.to_device, 0U);
    }
    if (span.work != ring::Work::kernels) {
      EXPECT_GT(span.crossed.to_device + span.crossed.to_host, 0U);
    }
  }
  EXPECT_EQ(to_device, report_["pcie"]["to_device_bytes"]);
  EXPECT_EQ(to_host, report_["pcie"]["to_host_bytes"]);
  EXPECT_EQ(segments.size(), report_["gpu"]["segments"]) << "none is lost, and none of the first frames is there";
  for (const auto& [segment, count] : packets) EXPECT_EQ(count, kPackets) << segment;
  EXPECT_EQ(packets.size(), timeline_->segments().size());
  EXPECT_TRUE(works.contains(ring::Work::kernels));
  const bool copies = GetParam().transfer == run::Transfer::streamed || GetParam().transfer == run::Transfer::direct;
  if (copies) {
    EXPECT_EQ(works.size(), 3U) << "the copy engines do it";
  }
  const unsigned streams = GetParam().transfer == run::Transfer::direct ? 1 : 3;
  EXPECT_EQ(timeline_->streams().size(), 2 * streams) << "of two workers";
}

TEST_P(TimelineOfAChain, HasEachStreamsWorkInItsOrder) {
  ASSERT_NO_FATAL_FAILURE(run_with({}));
  ASSERT_FALSE(spans_.empty());
  constexpr std::int64_t kClocksApart = 1'000'000;  // ns; the two clocks are read some microseconds apart
  std::map<std::uint32_t, const ring::Span*> last;  // by stream
  for (const ring::Span& span : spans_) {
    EXPECT_LE(span.ready_ns, span.end_ns);
    EXPECT_GT(span.ready_ns + kClocksApart, span.enqueued_ns) << "nothing is ready that is not enqueued";
    const ring::Span*& before = last[span.stream];
    if (before != nullptr) {
      EXPECT_LE(before->end_ns, span.ready_ns + 1000);  // within the resolution of events
      EXPECT_LE(before->batch, span.batch);
      EXPECT_LE(before->enqueued_ns, span.enqueued_ns);
    }
    before = &span;
  }
}

TEST_P(TimelineOfAChain, IsATraceOfTheLastBatchesAlone) {
  ASSERT_NO_FATAL_FAILURE(run_with({"outputs.timeline_batches=3"}));
  const Json trace = Json::parse(ring::trace_events_json(*timeline_));
  std::size_t slices = 0;
  for (const Json& event : trace["traceEvents"]) slices += event["ph"] == "X" ? 1 : 0;
  EXPECT_EQ(slices, spans_.size());
  EXPECT_GT(slices, 0U);
  EXPECT_GT(trace["otherData"]["spans_before"], 0);
  std::size_t most = 0;
  for (const ring::Span& span : spans_) most = std::max(most, timeline_->segments().at(span.segment).size());
  EXPECT_GT(most, 0U) << "segments are called by their functions";
  EXPECT_LE(slices, timeline_->streams().size() * 3 * 5 * timeline_->segments().size());
}

}  // namespace
}  // namespace penstock::on_gpu
