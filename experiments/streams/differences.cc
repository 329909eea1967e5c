// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "experiments/streams/differences.h"

namespace penstock::experiments {

const Differences& streams_differences() {
  static const Differences kDifferences{
      "Chaurasia, §IV and §V",
      {
          {"machine",
           "32 Xeon cores at 2.3 GHz, Tesla P100; a virtual machine with eight of the cores and 32 GB under "
           "ESXi 6.5",
           "{machine}",
           "the paper's GPU is of 2016",
           {}},
          {"virtualization",
           "GPU passed through (figure 2a); virtual GPUs shared by virtual machines (figures 2b to 6)",
           "a whole GPU; figures 2b to 6: `bench sharing`",
           "there is no host with NVIDIA's vGPU software",
           {}},
          {"packets",
           "generated, in memory; sizes of 64 to 1522 bytes",
           "the same, from a generator in the process, 10,000 flows",
           "the paper does not say how many flows",
           {}},
          {"what is timed",
           "copy of packets to the GPU, kernel, copy of results back (§IV), by an unstated clock",
           "a whole chain: receiving from the generator, parsing, transfers, kernels, ESP's headers, sending "
           "to a port that discards",
           "as in a gateway. This can only make ours slower",
           {}},
          {"IPsec",
           "AES-128-CBC and HMAC-SHA1, ported from OpenSSL, a thread for each packet; the direction is not "
           "stated",
           "the same algorithms, encryption in tunnel mode; also AES-128-CTR and AES-128-GCM",
           "our own kernels",
           {{"function", {"ipsec"}}}},
          {"intrusion detection",
           "Aho-Corasick, 147 rules that are not published, a thread for each packet",
           "147 synthetic rules, each packet on its own; Aho-Corasick with a thread for each packet, and our search; "
           "rules that a "
           "literal selects are evaluated on the host",
           "our own function. Other rules may cost more",
           {{"function", {"nids"}}}},
          {"streams",
           "the default stream, or the number of streams at which it was fastest (not stated), with threads "
           "and data divided among them",
           "one worker with one batch at a time, and with four in flight; one worker with one to eight "
           "streams; also several workers with three batches in flight each",
           "several workers, since one host core is the limit otherwise",
           {}},
          {"CPU", "not measured", "the same functions on all cores", "what the GPU replaces", {}},
      }};
  return kDifferences;
}

}  // namespace penstock::experiments
