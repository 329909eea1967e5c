// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// DPDK's ACL library, for comparison in the classification bench: IPv4 5-tuples, with the widest vector instructions of
// the machine. It does not test TCP flags, so it does slightly less work than our engines. Its headers are only
// included in rte_acl_peer.cc. DPDK must have been started.

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
  /// A key in the library's format, in network byte order.
  struct Tuple {
    std::uint8_t protocol;
    std::uint8_t pad[3];
    std::uint32_t source, destination;
    std::uint16_t source_port, destination_port;
  };
  [[nodiscard]] static Tuple wire(const classify::Key& key) noexcept;

  /// Takes IPv4 rules with prefixes, one range for each port, and a protocol, as ClassBench sets have them. Throws
  /// std::runtime_error if the table cannot be built.
  explicit RteAcl(const classify::Ruleset& rules);
  /// Writes for each tuple the index of its entry + 1, or 0 if none matches.
  void classify(std::span<const std::uint8_t*> tuples, std::uint32_t* results) const noexcept;
  [[nodiscard]] const char* algorithm() const noexcept { return algorithm_; }

 private:
  std::unique_ptr<rte_acl_ctx, RteAclDelete> context_;
  const char* algorithm_ = "";
};

}  // namespace penstock::firewall
