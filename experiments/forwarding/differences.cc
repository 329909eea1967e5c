// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "experiments/forwarding/differences.h"

namespace penstock::experiments {

const Differences& forwarding_differences() {
  static const Differences kDifferences{
      "RFC 2544",
      {
          {"machine",
           "a tester, and a device under test",
           "{machine}; all in one",
           "there is no second machine with fast NICs",
           {}},
          {"links",
           "media of the device, such as Ethernet",
           "veth interfaces of three namespaces",
           "they show what the ports cost, not what a NIC allows",
           {}},
          {"throughput (§26.1)",
           "the highest rate without a loss, found by search, 60 seconds for each trial",
           "what is delivered under the highest load, for as long as `--duration` says",
           "not the RFC's throughput: veth's queues lose packets at any load with bursts",
           {{"sweep", {"rate"}}}},
          {"latency (§26.2)",
           "at the throughput rate, 20 trials of 120 seconds",
           "at 0, 50 and 80 percent of the highest delivered rate, about 1,000 probes a second",
           "see above",
           {{"sweep", {"latency"}}}},
          {"frame loss (§26.3)",
           "by load, from 100 percent of the medium's rate down",
           "under the highest load only",
           "it shows the most",
           {{"sweep", {"rate"}}}},
          {"frame sizes (§9.1)", "seven sizes", "64 and 1518 bytes", "the smallest and the largest", {}},
          {"peer", "none", "Linux's own forwarding in the same run", "what users have now", {}},
      }};
  return kDifferences;
}

}  // namespace penstock::experiments
