// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Conformance cases whose rules need only one packet: original rules and captures, and the alerts of a reference
// engine. Each rule is tested on each packet, without groups, streams, thresholds or order.

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "nf/nids/detect/buffer_program.h"
#include "nf/nids/detect/packet_test.h"
#include "nf/nids/rules/rule_reader.h"
#include "port/capture_reader.h"
#include "stack/tracker.h"

namespace penstock::nids {
namespace {

std::filesystem::path corpus() {
  const char* const given = std::getenv("PENSTOCK_CORPUS");
  return given != nullptr ? given : PENSTOCK_SOURCE_DIR "/../shared/data";
}

class EachRule final : public stack::PacketSink {
 public:
  explicit EachRule(const RuleSet& rules) : rules_(rules) {
    for (const Rule& rule : rules_.rules) {
      const std::vector<BufferMatch>* base64 = nullptr;
      for (const BufferMatches& buffer : rule.buffers) {
        if (buffer.buffer == Buffer::base64_data) base64 = &buffer.matches;
      }
      programs_.emplace_back();
      for (const BufferMatches& buffer : rule.buffers) {
        if (buffer.matches.empty() || buffer.buffer == Buffer::base64_data) continue;
        auto program = BufferProgram::compile(buffer, base64 == nullptr ? std::span<const BufferMatch>() : *base64);
        EXPECT_TRUE(program) << rule.text;
        if (program) programs_.back().emplace_back(buffer.buffer, std::move(*program));
      }
    }
  }

  void packet(stack::TrackedPacket& packet) noexcept override {
    if (packet.stream_end) return;
    for (std::size_t i = 0; i < rules_.rules.size(); ++i) {
      if (holds_all(i, packet)) ++alerts[std::to_string(rules_.rules[i].sid)];
    }
  }

  std::map<std::string, int> alerts;

 private:
  bool holds_all(std::size_t index, const stack::TrackedPacket& packet) {
    const Rule& rule = rules_.rules[index];
    if (!header_holds(rule, packet) || !flow_holds(rule.flow, packet, false)) return false;
    for (const PacketMatch& match : rule.packet_matches) {
      if (!holds(match, packet)) return false;
    }
    scratch_.begin_frame();
    scratch_.begin_rule();
    for (const auto& [buffer, program] : programs_[index]) {
      const stack::Bytes bytes =
          buffer == Buffer::payload ? packet.packet.payload : header_buffer(buffer, packet.packet);
      if (bytes.empty() || !program.matches(bytes, scratch_)) return false;
    }
    return true;
  }

  const RuleSet& rules_;
  std::vector<std::vector<std::pair<Buffer, BufferProgram>>> programs_;
  InspectionScratch scratch_;
};

class InspectionCorpus : public ::testing::TestWithParam<const char*> {};

TEST_P(InspectionCorpus, AlertsAsTheReference) {
  const std::filesystem::path folder = corpus() / "ids" / "a" / GetParam();
  if (!std::filesystem::exists(folder)) GTEST_SKIP() << "no corpus: set PENSTOCK_CORPUS to the folder of test data";
  RuleFiles files;
  files.rules = {folder / "test.rules"};
  const auto rules = read_rules(files);
  ASSERT_TRUE(rules) << to_string(rules.error());
  for (const RuleSet::Left& left : rules->left_out) ADD_FAILURE() << to_string(left.why);

  EachRule each(*rules);
  stack::Tracker tracker{stack::TrackerOptions{}};
  port::ReadControl control;
  auto capture = port::CaptureReader::open(folder / "in.pcap", control);
  ASSERT_TRUE(capture) << to_string(capture.error());
  port::CapturedFrame frame;
  for (std::uint64_t number = 1; capture->next(frame) == port::CaptureReader::Status::packet; ++number) {
    std::vector<std::uint8_t> bytes(frame.bytes.begin(), frame.bytes.end());
    PacketDescriptor descriptor;
    descriptor.timestamp_ns = frame.timestamp_ns;
    descriptor.length = static_cast<std::uint32_t>(bytes.size());
    descriptor.wire_length = frame.wire_length;
    descriptor.link_type = frame.link_type;
    tracker.track({bytes.data(), &descriptor}, number, each);
  }
  tracker.finish(each);

  const auto expected = nlohmann::json::parse(std::ifstream(folder / "expected.json")).at("expected");
  EXPECT_EQ(each.alerts, (expected.get<std::map<std::string, int>>()));
}

INSTANTIATE_TEST_SUITE_P(Cases, InspectionCorpus,
                         ::testing::Values("byte-extract-01", "detect-bytejump-01", "detect-bytejump-02",
                                           "detect-bytemath-01", "detect-bytemath-05", "detect-bytemath-add-04",
                                           "detect-bytemath-div-01", "detect-bytemath-mult-04",
                                           "detect-bytemath-sub-03", "detect-bytetest-01", "detect-icmp-id-01",
                                           "detect-icmp-id-02", "detect-icmp-seq", "detect-ipopts", "detect-ipopts-02",
                                           "detect-itype", "detect-itype-prefilter", "detect-ttl", "icmp-hdr-01",
                                           "ipopts-esec", "ipv4-hdr-keyword", "issue-3267-tcphdr",
                                           "issue-3341-tcphdr-01", "issue-8031-01-isdataat", "tcp-hdr-keyword"),
                         [](const auto& one) {
                           std::string name = one.param;
                           for (char& c : name) c = c == '-' ? '_' : c;
                           return name;
                         });

}  // namespace
}  // namespace penstock::nids
