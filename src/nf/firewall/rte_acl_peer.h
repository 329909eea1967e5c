// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// DPDK's ACL library as the classification bench's peer: 5-tuples of IPv4, with the widest look-up that the machine
// has. It knows no TCP flags, so it does a little less than our engines. Its headers stay in rte_acl_peer.cc; DPDK must
// have been started.

#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "classify/key.h"
#include "classify/rule.h"

struct rte_acl_ctx;

namespace penstock::firewall {

struct RteAclDelete {
  void operator()(rte_acl_ctx* context) const noexcept;
};

class RteAcl {
 public:
  /// A key as the library reads it, in network byte order.
  struct Tuple {
    std::uint8_t protocol;
    std::uint8_t pad[3];
    std::uint32_t source, destination;
    std::uint16_t source_port, destination_port;
  };
  [[nodiscard]] static Tuple wire(const classify::Key& key) noexcept;

  /// IPv4 rules of prefixes, one range of each port and a protocol: what ClassBench sets hold. Throws
  /// std::runtime_error where they cannot be built.
  explicit RteAcl(const classify::Ruleset& rules);
  /// The entry + 1 for each tuple, 0 for none.
  void classify(std::span<const std::uint8_t*> tuples, std::uint32_t* results) const noexcept;
  [[nodiscard]] const char* algorithm() const noexcept { return algorithm_; }

 private:
  std::unique_ptr<rte_acl_ctx, RteAclDelete> context_;
  const char* algorithm_ = "";
};

}  // namespace penstock::firewall
