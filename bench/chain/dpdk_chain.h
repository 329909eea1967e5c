// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The chain of two functions as one would write it by hand with DPDK's libraries (like its example l3fwd-acl, without a
// NIC): copy a burst of frames in, rte_acl, rte_fib, TTL and checksum. The chain bench is compared with it. Handles
// only IPv4 over Ethernet without options.

#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "nf/firewall/rte_acl_peer.h"
#include "nf/router/rte_fib_peer.h"

namespace penstock::bench {

class DpdkChain {
 public:
  DpdkChain(const classify::Ruleset& rules, std::span<const router::Route4> routes) : acl_(rules), fib_(routes) {}

  struct Counts {
    std::uint64_t forwarded = 0;
    std::uint64_t dropped = 0;
  };
  /// Processes all frames once, in bursts.
  Counts run(std::span<const std::vector<std::uint8_t>> frames);

 private:
  firewall::RteAcl acl_;
  router::RteFib4 fib_;
};

}  // namespace penstock::bench
