// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The rules of a firewall as the kernel's nftables has them. Whatever follows the kernel during a run is a RuleSource:
// it may still read them when the run has given up the capability for that. Through a reload, the source stays the
// same.

#pragma once

#include <cstddef>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "base/error.h"

namespace penstock::firewall {

/// Of a firewall whose rules are the kernel's.
struct FromKernel {
  std::string netns;       // the network namespace; "": that of the process
  std::size_t digest = 0;  // of the rule set (nftables/digest.h)
};

class RuleSource {
 public:
  virtual ~RuleSource() = default;
  /// The kernel's rule set now, as `nft -j -s list ruleset` prints it. Called by the thread that reloads.
  [[nodiscard]] virtual Result<std::string> read() = 0;
  /// Thread-safe.
  virtual void report(nlohmann::json& into) const = 0;
};

}  // namespace penstock::firewall
