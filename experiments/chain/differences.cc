// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "experiments/chain/differences.h"

namespace penstock::experiments {

const Differences& chain_differences() {
  static const Differences kDifferences{
      "Gaviss",
      {
          {"machine",
           "Xeon E5-2695 v4 (18 cores), Titan X (Pascal) on PCIe 3 x16, 101.3 Gbit/s to the GPU (§2.2, §5.1)",
           "{machine}",
           "the paper's GPU is of 2016; compare ratios, and parts of PCIe's limit",
           {}},
          {"where packets come from",
           "a second server, over a network of 40 Gbit/s, with DPDK (§5.1)",
           "a generator in the same process, which writes headers into packet memory; a port that discards "
           "packets",
           "the machine has no such NIC. The work of receiving and sending is not included, and no link "
           "limits the rate",
           {}},
          {"packets",
           "TCP, a fixed payload, 10,000 flows by destination (§5.1)",
           "C1 to C4: TCP, 10,000 flows, payloads of web pages",
           "a fixed payload would be an easy or a hard case of the search, which the paper does not say",
           {{"tables", {"paper", "heavy"}}}},
          {"chain",
           "C1 to C4 (§5.1)",
           "firewall, router: no chain of the paper; 1,000 rules, 1,000,000 routes, UDP",
           "two functions that read only headers, where sharing and transfers weigh most; on the axes of the paper's "
           "figures",
           {{"chain", {"firewall-router"}}}},
          {"functions",
           "router: DIR-24-8; firewall: bit vectors; IPsec: AES-128-CTR, HMAC-SHA1; NIDS: Aho-Corasick, 147 "
           "rules (§5.1). Their kernels are not state of the art, as §5.2 says. The sizes of the router's and "
           "the firewall's tables are not stated",
           "the same algorithms for router, firewall and IPsec; on the GPU another search than Aho-Corasick, "
           "by literals of at most eight bytes, and Hyperscan on the CPU; 147 synthetic rules. `paper`: 1,000 "
           "firewall rules, 10,000 routes, one SA. `heavy`: larger",
           "our own functions. The paper expects more throughput of better kernels (§5.2)",
           {{"tables", {"paper", "heavy"}}}},
          {"state of flows",
           "a shared stack, from libnids, defragments and tracks flows; per-flow states, such as the "
           "automaton's and the keys of AES and HMAC, go to the GPU too (§4.4, §5.4)",
           "all figures whose titles name neither functions with state of flows nor connections: each packet on its "
           "own (`tracking: packets`), no state of flows; one SA, with heavy tables 1,000",
           "this is less work on the host, and less to transfer than in the paper",
           {{"tables", {"paper", "heavy"}}, {"sweep", {"size", "ablation", "gpus", "bounded"}}}},
          {"state of flows",
           "a shared stack, from libnids, defragments and tracks flows (§4.4)",
           "none: neither function keeps states",
           "this is less work on the host than in the paper",
           {{"chain", {"firewall-router"}}}},
          {"state of flows",
           "as above",
           "figures titled functions with state of flows: TCP connections, whose data segments are up to the frame "
           "size "
           "long and whose acknowledgements are short (816 bytes on average at 1518); a firewall that tracks "
           "connections, intrusion detection "
           "that follows streams; the states of the search and of connections cross, keys of IPsec stay on the device",
           "the paper's case, with our stack, which tracks what a gateway needs against an attacker",
           {{"sweep", {"stateful"}}}},
          {"state of flows",
           "a shared stack, from libnids, defragments and tracks flows; per-flow states, such as the "
           "automaton's, go to the GPU too (§4.4, §5.4)",
           "`streams` follows connections and streams on the host; `automaton` sends the state of the search "
           "along",
           "as the paper, with our stack",
           {{"sweep", {"state"}}}},
          {"state of flows",
           "CPU functions have a network stack for stateful processing (§5.3); whether the firewall decides "
           "by connections is not stated",
           "a firewall that tracks connections, and one that does not",
           "both readings",
           {{"sweep", {"connections"}}}},
          {"checksums",
           "the stack is from libnids (§5.1)",
           "chains named `-nic`: the firewall that tracks connections does not verify checksums of TCP and UDP, as if "
           "the NIC had. Intrusion detection that follows streams verifies them on the host; where it inspects each "
           "packet on its own, nothing does",
           "many NICs verify them. `sweep=connections` has chains with and without verification by the firewall",
           {{"chain", {"C3-stateful-nic", "C4-stateful-nic"}}}},
          {"isolation",
           "each function in a Docker container with two threads of its own; kernels are submitted through a "
           "proxy; the scheduler of G-NET assigns multiprocessors (§3.2, §5.1)",
           "functions in one process; each worker takes its packets through the whole chain",
           "we do not isolate functions, and do not pay for it",
           {}},
          {"baseline on the GPU",
           "figure 6: works as G-NET, without its switch: each function transfers and parses. §5.4, "
           "No-Memshare: only the GPU memory is not shared, batches and multiprocessors as with sharing",
           "our chain with sharing off: `own-stacks` (each function has a packet buffer and a protocol stack on the "
           "host, "
           "transfers and parses), `unshared` (transfers and parses), `no-memshare` (transfers), each with the "
           "workers, "
           "streams and batches that made it fastest; a function transfers what it reads",
           "neither G-NET nor the paper's code was run. At most 48.4 % saved in figure 9 also implies that "
           "functions without payload transfer less than whole packets",
           {{"tables", {"paper", "heavy"}}}},
          {"baseline on the CPU",
           "OpenNetVM with G-Opt and AES-NI, stateful, 15 cores shared out by hand and three for I/O and a "
           "monitor (§5.3)",
           "the same functions on the CPU, each core with the whole chain",
           "OpenNetVM was not run",
           {{"tables", {"paper", "heavy"}}}},
          {"what is turned off",
           "the GPU memory that functions share (No-Memshare, §5.4)",
           "`packets`: each function transfers its packets (`no-memshare`); `packets+parsing`: and parses them on the "
           "GPU (`unshared`); `packets+parsing+stack`: and has a packet buffer and a protocol stack on the host "
           "(`own-stacks`). `graphs`: kernels and copies of batches below 2 MiB are launched one by one. "
           "`small-batch-kernels`: copy engines move batches below 256 KiB too. `deferred-finish`: the host evaluates "
           "what the GPU has found before a batch is sent, not after. `all`: all of these",
           "what each of them gives. At the highest rate, batches are larger than 256 KiB, and with 1518-byte frames "
           "than 2 MiB: what `small-batch-kernels`, and `graphs` with such frames, seem to change there is scatter",
           {{"sweep", {"ablation", "ablation-latency"}}}},
          {"latency",
           "a bound of 1 ms for each function (§5.2); the load of figure 11 is not stated",
           "a bound of 1 ms for a batch's time in the chain; 10, 50 and 80 percent of the highest rate; from when a "
           "packet is due until it is handed to the port",
           "stated loads can be repeated. The way through a NIC, in and out, is missing",
           {{"sweep", {"latency", "share-latency"}}}},
          {"latency at the same load",
           "a bound of 1 ms for each function (§5.2); the load of figure 12 is not stated",
           "a bound of 1 ms for a batch's time in the chain; for all ways of sharing half of the highest rate with own "
           "stacks, where all frame sizes are shown, and half of the unshared one otherwise; from when a packet is due "
           "until it is handed to the port",
           "a load that all ways should carry. The way through a NIC, in and out, is missing",
           {{"sweep", {"same-load", "same-load-size"}}}},
          {"latency",
           "not measured",
           "a bound of 1 ms for a batch's time in the chain; 10 percent of the highest rate with everything on; from "
           "when a packet is due until it is handed to the port",
           "batches are small at this load. It may exceed the highest rate with own stacks and with all turned off: "
           "then the latency is that of a full queue",
           {{"sweep", {"ablation-latency"}}}},
          {"several GPUs", "one GPU", "C4, and firewall and NIDS", "not in the paper", {{"sweep", {"gpus"}}}},
      }};
  return kDifferences;
}

}  // namespace penstock::experiments
