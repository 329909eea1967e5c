// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "experiments/filter/differences.h"

namespace penstock::experiments {

const Differences& filter_differences() {
  static const Differences kDifferences{
      "Hung & Guo",
      {
          {"machine",
           "Core i7-3930K, GTX 560 Ti; figure 14: GTX 450, 480, 560 Ti (§5)",
           "{machine}",
           "the paper's GPUs are of 2010 and 2011; figure 14: parts of one GPU instead of three",
           {}},
          {"packets",
           "65 million with random addresses, ports and protocol (§5); the bytes of a packet on the GPU are "
           "not stated",
           "65,000,000 random ones of 16 bytes; of those that are checked, one of 997, three of four match a "
           "rule",
           "the size decides what PCIe allows: 16 bytes are all five fields",
           {}},
          {"rules",
           "1,000 made from three rules of two fields (§5), where table 2 lists four of one to three",
           "1,000 made from the four of table 2, with four fields each; `reading=text`: three, with the two "
           "addresses",
           "the paper contradicts itself; both readings are measured",
           {}},
          {"BPF",
           "named after BPF, but figure 6 is a loop over all rules which compares one address",
           "linear matching of all fields of a rule, `last` as in figure 6 and `first` as in §4.1",
           "the same loop with all fields. Many real BPF programs are the sweep filters",
           {}},
          {"rules in registers",
           "rules in registers (table 3), 1,000 of them; how is not stated",
           "rules as immediates of generated code (`code`)",
           "1,000 rules do not fit into 255 registers",
           {}},
          {"RFC",
           "tables compressed with bitmaps; figure 8 looks up the two addresses and adds the results modulo "
           "256",
           "RFC of all fields, tables compressed with bitmaps, 853 KiB for 1,000 rules, of which 64 KiB are "
           "in constant memory",
           "figure 8 is simpler than the text (§4.2): a sum in place of a cross product. Tables for the two "
           "addresses of 300 rules fit into constant memory",
           {}},
          {"what is timed",
           "not stated; figures show speed-ups and throughput",
           "from pinned host memory to results in pinned host memory; `none`: kernels alone",
           "both readings",
           {}},
          {"baseline",
           "sequential software on a single CPU (§1)",
           "one core, packet by packet and field by field; and all cores with AVX2",
           "the first is how we read the paper; the second is what a CPU can do",
           {}},
      }};
  return kDifferences;
}

}  // namespace penstock::experiments
