// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "experiments/detection/differences.h"

namespace penstock::experiments {

const Differences& detection_differences() {
  static const Differences kDifferences{
      "Chaurasia §IV; no figure of a paper",
      {
          {"machine", "Chaurasia: 32 Xeon cores at 2.3 GHz, Tesla P100", "{machine}", "the paper's GPU is of 2016", {}},
          {"what is measured",
           "Chaurasia: 147 rules, by frame size (figure 2a: experiment streams). Araujo measures losses, load "
           "and delay of a copy of live traffic (experiment live)",
           "rates by number of rules and frame size, from host memory to host memory",
           "no paper has these axes: they are those of Alonistioti's figures, for another function",
           {}},
          {"rules",
           "147, not published",
           "147 to 30,000 synthetic rules, or your own",
           "synthetic contents are longer and rarer than those of real rules, so most packets need no further "
           "work on the host, and Hyperscan is faster too",
           {}},
          {"packets",
           "generated, in memory",
           "payloads of web pages, which the rules do not match: this measures the search",
           "a packet with a match costs the host more",
           {}},
          {"flows and streams",
           "not described",
           "`connections`: connections and their streams are followed",
           "as a NIDS has to",
           {{"sweep", {"connections"}}}},
          {"baseline",
           "the GPU's default stream",
           "all cores, and Hyperscan alone on payloads without packets, rules or flows",
           "the best that a CPU can do",
           {}},
      }};
  return kDifferences;
}

}  // namespace penstock::experiments
