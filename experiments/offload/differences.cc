// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "experiments/offload/differences.h"

namespace penstock::experiments {

const Differences& offload_differences() {
  static const Differences kDifferences{
      "Alonistioti, §III",
      {
          {"machine",
           "CPU, GPU and FPGA are not named",
           "{machine}",
           "rates of unknown hardware cannot be compared; shapes and ratios can",
           {}},
          {"what is timed",
           "the shading phase of PacketShader's code with batching and copies before and after it, without "
           "NICs; whether the GPU's rates include the copies is not stated",
           "`end_to_end`: from keys in pinned host memory to results there, up to four batches at once; `kernel`: keys "
           "and results stay on the device, one launch at a time, which may therefore be slower",
           "both readings of the paper are given",
           {}},
          {"packets",
           "traces of real traffic, and patterns of TCP and UDP with attacks (DefCOM)",
           "keys alone: addresses of random routes; 5-tuples of which three of four match a random rule",
           "the traces are not given; random keys have no locality, which caches would use",
           {}},
          {"traffic",
           "named in words: TCP bursts and UDP flows (§II.A), TCP or UDP intensive, balanced, and malicious traffic "
           "(§III)",
           "routing: `spread`, addresses of random routes; `bursts`, runs of up to 32 keys with one address; `flood`, "
           "one "
           "address in nine of ten keys. Firewall: `spread`; `tcp`, `balanced` and `udp`, 90, 50 and 10 % of the keys "
           "of "
           "TCP; `flood`, nine of ten are UDP packets from random sources to one host, which only the last rule "
           "matches",
           "our reading of the words",
           {{"sweep", {"traffic"}}}},
          {"routing tables",
           "tries with strides of 1 and 4 bits of parts of CAIDA's tables; 256,000 entries are the largest "
           "that the text names",
           "`trie1`, `trie4`, and DIR-24-8 (`dir24`); 1,000 to 1,000,000 synthetic routes, or your own",
           "the paper does not say which tables; DIR-24-8 is what a fast router uses",
           {{"function", {"router"}}}},
          {"firewall",
           "up to 1,024 rules, 75 % of them for TCP; the search on CPU and GPU is not described beyond linear "
           "search as the common one",
           "`linear`, and bit vectors (`bitvector`); 32 to 8,192 synthetic rules, 75 % of them for TCP, 14 % for UDP, "
           "4 % "
           "for ICMP",
           "bit vectors are what its FPGA uses",
           {{"function", {"firewall"}}}},
          {"batches and streams",
           "up to 65,536 packets; one, two and four streams",
           "256 to 1,048,576 keys; the same streams",
           "later GPUs need larger batches",
           {}},
          {"baseline", "one core", "one core, and all cores", "a GPU replaces a whole CPU, not a core", {}},
          {"FPGA", "measured", "not measured", "there is no FPGA", {}},
      }};
  return kDifferences;
}

}  // namespace penstock::experiments
