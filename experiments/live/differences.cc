// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "experiments/live/differences.h"

namespace penstock::experiments {

const Differences& live_differences() {
  static const Differences kDifferences{
      "Araujo, §5",
      {
          {"machine",
           "client: Core i7-6700; server: Xeon E5-2620 v2, Tesla K20c (§5.1)",
           "{machine}; client and server share it",
           "the paper's GPU is of 2012; iPerf3 takes cores from the system under test",
           {}},
          {"network",
           "two computers, gigabit Ethernet, 900 Mbit/s at most (§5.2)",
           "two network namespaces and a pair of veth interfaces",
           "one machine. There is no link rate, and no NIC that drops",
           {}},
          {"traffic",
           "iPerf3, for an hour; 10 Mbit/s to 1 Gbit/s",
           "iPerf3, TCP with random payloads, for as long as the command's `--duration` says (15 seconds if it does "
           "not); the same rates",
           "63 hours otherwise. Packets that still wait at the end count as lost in table 3",
           {}},
          {"intrusion detection",
           "C++ based on Snort, Aho-Corasick on CPU and GPU; the number of rules is not stated",
           "our `nids` with 147 synthetic rules; `araujo` on the CPU: Aho-Corasick; on the GPU our search",
           "the paper's code was not run",
           {}},
          {"arrangement",
           "one thread captures, three inspect, one queue of 128 MB, 16 streams, buffers of 256 KB to 32 MB, "
           "at most 500 ms (table 1)",
           "`araujo`: the same, by `queueing: shared`; `ours`: a queue for each of four workers",
           "the second is how we would do it",
           {{"system", {"araujo", "ours"}}}},
          {"delay",
           "mean processing time of packets; from where to where is not stated",
           "mean from the packet's arrival at the interface until its batch is done",
           "includes waiting in queues, without which table 2 could not have factors of 1,000",
           {}},
          {"CPU and GPU use",
           "percent of the CPU, of a machine with four cores; percent of the GPU",
           "time of the process on four cores; NVML's utilization, the part of the time with a kernel running",
           "NVML also counts kernels that use little of the GPU",
           {}},
      }};
  return kDifferences;
}

}  // namespace penstock::experiments
