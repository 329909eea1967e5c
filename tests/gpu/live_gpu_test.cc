// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The program on live interfaces, with its functions on a GPU. It needs the tools of tests/interop/README.md.

#include <gtest/gtest.h>

#include "interop/live_scenario.h"

namespace penstock {
namespace {

class LiveOnGpu : public LiveScenario {};

TEST_P(LiveOnGpu, Scenario) { run("gpu"); }

constexpr const char* kScenarios[] = {"Basics1",
                                      "Basics2",
                                      "Download3",
                                      "Jumbo",
                                      "Fragments2",
                                      "UdpSegments",
                                      "Vlans2",
                                      "Segments2",
                                      "OwnFrames1",
                                      "OwnFrames2",
                                      "Flood1",
                                      "FloodOfAStoppedProgram1",
                                      "FloodOfAStoppedProgram2",
                                      "EndsUnderLoad2",
                                      "Garbage2",
                                      "Refusals",
                                      "Detects2",
                                      "Killed1",
                                      "StartsDown",
                                      "MtuGrows",
                                      "GoesDown2",
                                      "Idle2",
                                      "Capabilities",
                                      "FilterAlone",
                                      "Router",
                                      "FirewallRouter2",
                                      "Everything"};
constexpr const char* kForInterfaces[] = {"Deleted2",           "MovedAway",  "LargeFrames",  "Tunnel",
                                          "Unprivileged2",      "Soak",       "KernelRoutes", "KernelNeighbours",
                                          "FirstPackets",       "NoSuchHost", "Scan",         "Home",
                                          "RejectsBehindRouter"};
constexpr const char* kForXdp[] = {
    "Basics1",         "Basics2",    "Download1",      "Jumbo",      "Fragments2", "Vlans1",
    "Flood1",          "Flood2",     "OwnFrames1",     "OwnFrames2", "Router",     "Refusals",
    "FirewallRouter2", "Everything", "EndsUnderLoad1", "Killed1",    "GoesDown1",  "Idle1"};
constexpr const char* kReloads[] = {"Reloads1", "Reloads2"};
constexpr const char* kForDpdk[] = {"Basics1", "Basics2",    "OwnFrames1", "OwnFrames2",
                                    "Router",  "Everything", "Killed1"};

using ::testing::Combine;
using ::testing::Values;
using ::testing::ValuesIn;
INSTANTIATE_TEST_SUITE_P(All, LiveOnGpu, Combine(Values("af_packet", "tap"), ValuesIn(kScenarios)), name_of_scenario);
INSTANTIATE_TEST_SUITE_P(Interfaces, LiveOnGpu, Combine(Values("af_packet"), ValuesIn(kForInterfaces)),
                         name_of_scenario);
INSTANTIATE_TEST_SUITE_P(Xdp, LiveOnGpu, Combine(Values("af_xdp", "af_xdp_generic"), ValuesIn(kForXdp)),
                         name_of_scenario);
INSTANTIATE_TEST_SUITE_P(Reloading, LiveOnGpu, Combine(Values("af_packet", "tap", "af_xdp"), ValuesIn(kReloads)),
                         name_of_scenario);
INSTANTIATE_TEST_SUITE_P(Upgrading, LiveOnGpu, Combine(Values("af_packet", "tap"), Values("Upgrades1", "Upgrades2")),
                         name_of_scenario);
INSTANTIATE_TEST_SUITE_P(Dpdk, LiveOnGpu, Combine(Values("dpdk", "dpdk_tap"), ValuesIn(kForDpdk)), name_of_scenario);

}  // namespace
}  // namespace penstock
