// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The program on live interfaces, on CPUs.

#include <gtest/gtest.h>

#include "interop/live_scenario.h"

namespace penstock {
namespace {

class Live : public LiveScenario {};

TEST_P(Live, Scenario) { run("cpu"); }

constexpr const char* kForAll[] = {"Basics1",
                                   "Basics2",
                                   "Download3",
                                   "Jumbo",
                                   "Fragments2",
                                   "UdpSegments",
                                   "Vlans1",
                                   "Vlans2",
                                   "Segments1",
                                   "Segments2",
                                   "OwnFrames1",
                                   "OwnFrames2",
                                   "Flood1",
                                   "FloodOfAStoppedProgram1",
                                   "FloodOfAStoppedProgram2",
                                   "EndsUnderLoad2",
                                   "Garbage1",
                                   "Garbage2",
                                   "Refusals",
                                   "Detects2",
                                   "Killed1",
                                   "Killed2",
                                   "StartsDown",
                                   "MtuGrows",
                                   "GoesDown1",
                                   "GoesDown2",
                                   "Idle2",
                                   "Rejects2",
                                   "Capabilities"};
// What a TAP device cannot do, or what needs more capabilities for one.
constexpr const char* kForInterfaces[] = {"Deleted1",    "Deleted2",      "MovedAway",
                                          "LargeFrames", "LongestFrames", "Tunnel"};
constexpr const char* kForPacketSockets[] = {"Conversations",
                                             "Conversations4",
                                             "Evening",
                                             "Evening4",
                                             "Ftp",
                                             "Ftp4",
                                             "GatewayHost",
                                             "GatewayHost4",
                                             "Home",
                                             "Home4",
                                             "HomeOfKernel",
                                             "TransparentFirewall",
                                             "Unprivileged1",
                                             "Unprivileged2",
                                             "KernelRoutes",
                                             "KernelLinks",
                                             "KernelNeighbours",
                                             "KernelReloads",
                                             "KernelRoutesInRules",
                                             "KernelErrors",
                                             "Frr",
                                             "FirstPackets",
                                             "FirstPacketsByLinkAddress",
                                             "NoSuchHost",
                                             "Scan",
                                             "HeldInAnUpgrade",
                                             "SecondRun",
                                             "KernelWarnings",
                                             "IkeGcm",
                                             "IkeCbcIpv6",
                                             "XfrmPolicies",
                                             "RejectsBehindRouter"};
constexpr const char* kKernelRules[] = {"KernelRules", "KernelRulesUnprivileged", "KernelRulesElsewhere"};
constexpr const char* kForTap[] = {"TapDeleted", "TapMoved"};
constexpr const char* kReloads[] = {"Reloads1", "Reloads2"};
constexpr const char* kUpgrades[] = {"Upgrades1", "Upgrades2", "InterruptedUpgrades", "PredecessorDies",
                                     "RefusedUpgrades"};
// What depends little on the kind of port.
constexpr const char* kForOne[] = {"Download1",       "Fragments3",        "Flood2",       "EndsUnderLoad1",
                                   "Idle1",           "FilterAlone",       "Router",       "FirewallRouter2",
                                   "Everything",      "Detects1",          "Soak",         "EspToLinux",
                                   "EspToRteIpsec",   "HostileClients",    "Connections1", "Connections2",
                                   "KeptConnections", "KeptTranslations4", "Rejects1",     "Tenant2"};

// Frames of several segments from raw sockets, and of UDP, are not for AF_XDP (src/port/README.md).
constexpr const char* kForXdp[] = {
    "Basics1", "Basics2",    "Download1",  "Jumbo",        "Fragments2",      "Vlans1",          "Flood1",
    "Flood2",  "OwnFrames1", "OwnFrames2", "Router",       "Everything",      "EndsUnderLoad1",  "Refusals",
    "Killed1", "GoesDown1",  "Idle1",      "Capabilities", "KernelRoutesXdp", "KernelErrorsXdp", "Tenant1"};

// Their drivers neither split frames nor count all losses, and take no more than an MTU of 1500 (docs/live.md).
constexpr const char* kForDpdk[] = {"Basics1",    "Basics2", "Vlans1",  "Flood1",    "EndsUnderLoad2", "OwnFrames1",
                                    "OwnFrames2", "Router",  "Killed1", "GoesDown2", "Everything"};
constexpr const char* kForDpdkOnPacketSockets[] = {"Vlans2",  "UdpSegments", "Flood2",      "FirewallRouter2",
                                                   "Killed2", "StartsDown",  "Capabilities"};
constexpr const char* kForDpdkOnTap[] = {"Fragments2"};

using ::testing::Combine;
using ::testing::Values;
using ::testing::ValuesIn;
INSTANTIATE_TEST_SUITE_P(All, Live, Combine(Values("af_packet", "tap"), ValuesIn(kForAll)), name_of_scenario);
INSTANTIATE_TEST_SUITE_P(Interfaces, Live, Combine(Values("af_packet"), ValuesIn(kForInterfaces)), name_of_scenario);
INSTANTIATE_TEST_SUITE_P(KernelRules, Live, Combine(Values("af_packet"), ValuesIn(kKernelRules)), name_of_scenario);
INSTANTIATE_TEST_SUITE_P(PacketSockets, Live, Combine(Values("af_packet"), ValuesIn(kForPacketSockets)),
                         name_of_scenario);
INSTANTIATE_TEST_SUITE_P(Xdp, Live, Combine(Values("af_xdp", "af_xdp_generic"), ValuesIn(kForXdp)), name_of_scenario);
INSTANTIATE_TEST_SUITE_P(Dpdk, Live, Combine(Values("dpdk", "dpdk_tap"), ValuesIn(kForDpdk)), name_of_scenario);
INSTANTIATE_TEST_SUITE_P(DpdkOnPacketSockets, Live, Combine(Values("dpdk"), ValuesIn(kForDpdkOnPacketSockets)),
                         name_of_scenario);
INSTANTIATE_TEST_SUITE_P(DpdkOnTap, Live, Combine(Values("dpdk_tap"), ValuesIn(kForDpdkOnTap)), name_of_scenario);
INSTANTIATE_TEST_SUITE_P(Large, Live,
                         Combine(Values("af_packet", "tap", "af_xdp", "af_xdp_generic", "dpdk", "dpdk_tap"),
                                 Values("LargeDownload")),
                         name_of_scenario);
INSTANTIATE_TEST_SUITE_P(Tunnel, Live,
                         Combine(Values("af_packet", "tap", "af_xdp", "af_xdp_generic", "dpdk"), Values("EspRouted")),
                         name_of_scenario);
// In generic mode, AF_XDP does not know the segments' size (src/port/README.md).
INSTANTIATE_TEST_SUITE_P(TunnelPath, Live, Combine(Values("af_packet", "tap", "af_xdp"), Values("EspPathMtu")),
                         name_of_scenario);
INSTANTIATE_TEST_SUITE_P(Detecting, Live,
                         Combine(Values("tap", "af_xdp", "af_xdp_generic", "dpdk", "dpdk_tap"), Values("Detects1")),
                         name_of_scenario);
INSTANTIATE_TEST_SUITE_P(Translating, Live, Combine(Values("tap", "af_xdp", "dpdk"), Values("Home4")),
                         name_of_scenario);
INSTANTIATE_TEST_SUITE_P(DetectingByTwo, Live, Combine(Values("af_xdp_generic"), Values("Detects2")), name_of_scenario);
INSTANTIATE_TEST_SUITE_P(Reloading, Live,
                         Combine(Values("af_packet", "tap", "af_xdp", "af_xdp_generic"), ValuesIn(kReloads)),
                         name_of_scenario);
INSTANTIATE_TEST_SUITE_P(Upgrading, Live, Combine(Values("af_packet", "tap"), ValuesIn(kUpgrades)), name_of_scenario);
INSTANTIATE_TEST_SUITE_P(NotUpgrading, Live, Combine(Values("af_xdp", "dpdk"), Values("UnsupportedUpgrade")),
                         name_of_scenario);
INSTANTIATE_TEST_SUITE_P(Once, Live, Combine(Values("af_packet"), ValuesIn(kForOne)), name_of_scenario);
INSTANTIATE_TEST_SUITE_P(Tap, Live, Combine(Values("tap"), ValuesIn(kForTap)), name_of_scenario);

}  // namespace
}  // namespace penstock
