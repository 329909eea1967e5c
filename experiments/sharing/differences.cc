// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "experiments/sharing/differences.h"

namespace penstock::experiments {

const Differences& sharing_differences() {
  static const Differences kDifferences{
      "Chaurasia, §IV and §V",
      {
          {"machine",
           "32 Xeon cores at 2.3 GHz, Tesla P100 of 16 GB; virtual machines with eight of the cores under ESXi 6.5",
           "{machine}",
           "the paper's GPU is of 2016",
           {}},
          {"virtualization",
           "NVIDIA's vGPUs: the hypervisor's driver gives virtual machines time slices of the GPU",
           "emulated: processes whose batches one process runs, the proxy, in one context; no virtual machines",
           "there is no host with NVIDIA's vGPU software. Kernels of several tenants can run at the same time here, "
           "and "
           "in the paper they cannot",
           {}},
          {"the driver's own sharing",
           "not measured outside of virtual machines",
           "the same processes without a proxy: by time slices, and as clients of MPS",
           "what users have without a proxy",
           {}},
          {"schedulers",
           "best effort, equal share and fixed share, by time on the GPU",
           "the same names, and weighted, by bytes that cross PCIe; deadline, by time on the GPU as far as the proxy "
           "knows it, with latency bounds in `bounds` only. `fixed` gives each tenant its part of what four tenants "
           "reached with best effort",
           "a batch cannot be interrupted, and the time of one among others is not known exactly",
           {}},
          {"share error",
           "not measured",
           "of the tenant that is furthest from its share, in percent of this share: the promised one; where none is "
           "promised (best effort, time slices, MPS), an equal one",
           "what a tenant can rely on",
           {}},
          {"profiles",
           "4q: 4 of 16 GB of memory, and with it the number of virtual machines",
           "4q: 4 of 16 parts of the GPU's memory, and the tenant's weight",
           "the GPU is larger",
           {}},
          {"packets",
           "generated, in memory; sizes of 64 to 1522 bytes",
           "the same, from a generator in each tenant that keeps frames in memory and writes their headers, 10,000 "
           "flows",
           "as if a NIC had written the rest. The paper does not say how many flows",
           {}},
          {"what is timed",
           "copy of packets to the GPU, kernel, copy of results back (§IV), by an unstated clock",
           "whole chains, in consecutive times in which all tenants run",
           "as in a gateway. This can only make ours slower",
           {}},
          {"host",
           "eight virtual cores for each virtual machine",
           "a worker for each two sixteenths of a tenant's profile, at least one; where the paper's figure is about "
           "one "
           "process (2a, 2b, 5, 6), one. In the proxy a thread for each worker; both poll",
           "with more of them than cores, tenants wait for cores, too",
           {}},
          {"IPsec",
           "AES-128-CBC and HMAC-SHA1, ported from OpenSSL; the direction is not stated",
           "the same algorithms, encryption in tunnel mode",
           "our own kernels",
           {{"function", {"ipsec"}}}},
          {"intrusion detection",
           "Aho-Corasick, 147 rules that are not published, a thread for each packet",
           "147 synthetic rules, each packet on its own, Aho-Corasick with a thread for each packet (`nids`), and our "
           "search (`nids_ours`)",
           "other rules may cost more",
           {{"function", {"nids"}}}},
          {"streams",
           "the default stream, or the number at which it was fastest (not stated)",
           "one batch of 4 MiB at a time, or several of 8 MiB in flight: four for a tenant with one worker, two for "
           "each worker of others; as many workers for both",
           "four is the fastest for one worker (`bench streams`)",
           {}},
          {"machine learning",
           "TensorFlow's CNN benchmarks in virtual machines, model not stated",
           "PyTorch, a ResNet with 18 layers on random images of 32 x 32 pixels, batches of 128; processes beside the "
           "proxy, not its tenants; also with the proxy and the processes as clients of one MPS",
           "the proxy runs only functions. The driver divides time among its context and the others",
           {{"sweep", {"learning"}}}},
      }};
  return kDifferences;
}

}  // namespace penstock::experiments
