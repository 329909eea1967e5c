// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// A tenant that attaches to a proxy beside others, and detaches again: it shows how long that takes, and gives the
// experiment a time in which it can look at the others.

#pragma once

#include <atomic>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "base/error.h"
#include "experiments/sharing/running_proxy.h"
#include "experiments/sharing/started.h"
#include "experiments/workload.h"

namespace penstock::experiments {

/// One stay of the visitor.
struct Visit {
  double start_ms = 0;   // from the start of its program until packets flow, as its user sees it
  double attach_ms = 0;  // by the proxy: from `hello` to its first batch
  double detach_ms = 0;  // by the proxy: to release what it had
};

/// Starts `program` with this chain, waits until packets flow, then ends it, and returns when the proxy has released
/// what it had. `folder`: the visitor's own, where the chain's control socket is (Tenants::control_of).
[[nodiscard]] Result<Visit> visit(const RunningProxy& proxy, const Words& program, const std::string& chain,
                                  const Workplace& folder, const std::atomic<bool>& stop);

/// What the status of a proxy says (src/proxy/README.md): how long the tenant of this name took to attach. Empty: it is
/// not there, or has had no batch yet.
[[nodiscard]] std::optional<double> attach_ms_of(const nlohmann::json& status, const std::string& tenant);

/// All tenants that have detached from a proxy.
struct Detached {
  double tenants = 0;
  double seconds = 0;  // together
};
/// Empty: it is not a status.
[[nodiscard]] std::optional<Detached> detached_of(const nlohmann::json& status);

}  // namespace penstock::experiments
