// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "experiments/transfer/differences.h"

namespace penstock::experiments {

const Differences& transfer_differences() {
  static const Differences kDifferences{
      "Gaviss §5.6; Hung & Guo §3.3, §4.3",
      {
          {"machine",
           "Gaviss: Titan X (Pascal), PCIe 3 x16, which carries 101.3 Gbit/s to the GPU and 95.7 back",
           "{machine}",
           "the paper's GPU is of 2016",
           {}},
          {"buffer",
           "Gaviss: 200 KB of packets of 1,024 bytes",
           "the same, and 4 MiB",
           "our batches are larger",
           {{"part", {"return"}}}},
          {"schemes",
           "Gaviss: the whole buffer, or each run of remaining packets",
           "these, and packing by kernels, with a copy or directly to host memory",
           "a chain's packets come back packed by kernels (`pack`), or small batches directly (`pack_zero`)",
           {{"part", {"return"}}}},
          {"what is timed",
           "Gaviss: the speed of the transfer; how it was taken is not stated",
           "the bytes of remaining packets by the time until they are in host memory, one buffer at a time; "
           "the host knows in advance which remain",
           "only these are of use. In a system, schemes that select also have to wait for the verdicts",
           {{"part", {"return"}}}},
          {"transfer modes",
           "Hung & Guo: direct copies, zero copy and streams, for packet filters, in combination with the "
           "memories of packets and rules (tables 3 and 4)",
           "the modes alone, for the chain firewall, router, with one worker",
           "the memories are in the experiment filter; this shows what a whole chain gains from a mode",
           {{"part", {"modes"}}}},
      }};
  return kDifferences;
}

}  // namespace penstock::experiments
