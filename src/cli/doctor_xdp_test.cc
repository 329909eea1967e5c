// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "cli/doctor_xdp.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

namespace penstock::cli {
namespace {

using port::QueueCounts;
using port::XdpInterface;
using port::XdpSupport;
using State = Finding::State;
using testing::HasSubstr;
using testing::StartsWith;

Finding finding_of(const XdpInterface& interface, std::string_view kernel = "6.12.0-1-amd64") {
  std::vector<Finding> findings;
  examine_xdp({interface}, kernel, findings);
  return findings.at(0);
}

XdpInterface nic(std::optional<XdpSupport> support) { return {"eth0", "ice", QueueCounts{8, 8}, support}; }

TEST(DoctorXdp, SaysHowEachKindOfDriverTakesFrames) {
  const Finding full = finding_of(nic(XdpSupport{true, true, true, 5}));
  EXPECT_EQ(full.subject, "eth0");
  EXPECT_EQ(full.state, State::ok);
  EXPECT_EQ(full.found, "native mode, zero-copy, frames of up to 5 buffers; driver ice, 8 queues");

  const Finding copies = finding_of(nic(XdpSupport{true, false, true, 0}));
  EXPECT_EQ(copies.state, State::note);
  EXPECT_THAT(copies.found, StartsWith("native mode, no zero-copy, frames of several buffers;"));

  const Finding generic = finding_of(nic(XdpSupport{}));
  EXPECT_EQ(generic.state, State::note);
  EXPECT_THAT(generic.found, StartsWith("generic mode only, no zero-copy;"));
}

TEST(DoctorXdp, SaysIfTheKernelDoesNot) {
  const Finding unknown = finding_of(nic(std::nullopt), "6.1.0-18-amd64");
  EXPECT_EQ(unknown.state, State::note);
  EXPECT_THAT(unknown.found, StartsWith("unknown: the kernel does not say (needs Linux 6.3);"));
  EXPECT_THAT(unknown.found, HasSubstr("driver ice, 8 queues"));
}

TEST(DoctorXdp, DistinguishesSeveralBuffersWithAndWithoutZeroCopy) {
  EXPECT_THAT(finding_of(nic(XdpSupport{true, true, true, 1})).found,
              HasSubstr("frames of several buffers only without zero-copy"));
  EXPECT_THAT(finding_of(nic(XdpSupport{true, true, false, 1})).found, HasSubstr("frames of one buffer"));
}

TEST(DoctorXdp, KnowsThatSocketsTakeFramesOfSeveralBuffersSinceLinux66) {
  const XdpInterface interface = nic(XdpSupport{true, true, true, 5});
  EXPECT_THAT(finding_of(interface, "6.5.13").found, HasSubstr("frames of one buffer"));
  EXPECT_THAT(finding_of(interface, "6.6.0").found, HasSubstr("frames of up to 5 buffers"));
  EXPECT_THAT(finding_of(interface, "7.0-rc1").found, HasSubstr("frames of up to 5 buffers"));
}

TEST(DoctorXdp, NamesQueuesOfBothDirectionsIfTheyDiffer) {
  EXPECT_THAT(finding_of({"v0", "veth", QueueCounts{1, 4}, XdpSupport{}}).found,
              HasSubstr("driver veth, 1 receive queue and 4 send queues"));
  EXPECT_THAT(finding_of({"x0", "", std::nullopt, XdpSupport{}}).found,
              HasSubstr("driver unknown, an unknown number of queues"));
}

TEST(DoctorXdp, GivesProgramsTheSameFacts) {
  const auto json = interfaces_json({nic(XdpSupport{true, true, true, 5}), {"br0", "", std::nullopt, std::nullopt}});
  EXPECT_EQ(json[0]["name"], "eth0");
  EXPECT_EQ(json[0]["driver"], "ice");
  EXPECT_EQ(json[0]["receive_queues"], 8);
  EXPECT_EQ(json[0]["xdp"]["zero_copy"], true);
  EXPECT_EQ(json[0]["xdp"]["zero_copy_buffers"], 5);
  for (const char* const unknown : {"driver", "receive_queues", "send_queues", "xdp"})
    EXPECT_TRUE(json[1][unknown].is_null()) << unknown;
}

}  // namespace
}  // namespace penstock::cli
