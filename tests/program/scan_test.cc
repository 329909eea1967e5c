// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// `penstock scan` as an analyst runs it: folders of captures, some of them broken; Suricata's options; compressed
// rules; the packets of alerts.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "program/program_for_test.h"

namespace penstock {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::SizeIs;

class ScanProgram : public Program {
 protected:
  void SetUp() override {
    Program::SetUp();
    fs::copy_file(PENSTOCK_SOURCE_DIR "/examples/inspected_gateway/nids.rules", folder_ / "nids.rules");
  }
  [[nodiscard]] static std::ptrdiff_t lines(const std::string& text) { return std::ranges::count(text, '\n'); }
};

TEST_F(ScanProgram, ReportsTwoBrokenCapturesOfTwentyAndScansTheOthers) {
  ASSERT_EQ(shell("mkdir captures logs && gzip nids.rules && cd captures &&\n"
                  "for i in $(seq 18); do cp ../in.pcap $i.pcap; done && gzip 3.pcap &&\n"
                  "head -c 3000 ../in.pcap >cut.pcap && echo garbled >garbled.pcap"),
            0)
      << read("err");
  EXPECT_EQ(shell("penstock scan -r captures -S nids.rules.gz -l logs -k none --json"), 1);
  EXPECT_THAT(read("err"), AllOf(HasSubstr("captures/garbled.pcap: not a readable capture"),
                                 HasSubstr("captures/cut.pcap: the capture is broken after packet 8")));
  EXPECT_EQ(lines(read("err")), 2) << read("err");
  const nlohmann::json summary = json("out");
  EXPECT_THAT(summary["captures"], SizeIs(20));
  EXPECT_THAT(summary["errors"], SizeIs(2));
  EXPECT_EQ(summary["packets"], 18 * 231 + 8);
  EXPECT_EQ(summary["warnings"][0], "2 of 20 captures could not be read, or not completely");
  EXPECT_EQ(lines(read("logs/fast.log")), summary["alerts"].get<std::ptrdiff_t>());
  EXPECT_EQ(lines(read("logs/eve.json")), summary["alerts"].get<std::ptrdiff_t>() + 1) << "and the statistics";
}

TEST_F(ScanProgram, PassesThePacketsOfAlertsOnThroughAPipe) {
  EXPECT_EQ(shell("penstock scan in.pcap -S nids.rules --alert-pcap - | penstock scan - -S nids.rules --json"), 0)
      << read("err");
  EXPECT_THAT(read("err"), HasSubstr("5 alerts from 3 rules")) << "the summary";
  EXPECT_EQ(json("out")["packets"], 5);
}

TEST_F(ScanProgram, FailsWithoutAnyRuleBeforeItWritesAnything) {
  write("own.rules", "alert tcp any any -> any any (msg:\"x\"; contnet:\"GET\"; sid:1;)\n");
  EXPECT_EQ(shell("penstock scan in.pcap -S own.rules -o eve.json"), 2);
  EXPECT_THAT(read("err"), AllOf(HasSubstr("own.rules:1:40: unknown option; did you mean 'content'?: found 'contnet'"),
                                 HasSubstr("-S: no rule could be loaded")));
  EXPECT_FALSE(exists("eve.json"));
}

TEST_F(ScanProgram, LooksUpRoutesOfCompressedJson) {
  write("routes", R"([{"dst":"10.0.0.0/8","gateway":"192.0.2.9","dev":"wan","flags":[]}])");
  EXPECT_EQ(shell("gzip routes && penstock route --routes routes.gz 10.1.2.3"), 0) << read("err");
  EXPECT_EQ(read("out"), "10.1.2.3 10.0.0.0/8 via 192.0.2.9 dev wan\n");
}

}  // namespace
}  // namespace penstock
