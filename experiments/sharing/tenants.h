// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The tenants of a point, each a run in a process of its own. Owns the processes.

#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "experiments/program.h"
#include "experiments/sharing/run_socket.h"
#include "experiments/sharing/started.h"
#include "experiments/sharing/usage.h"
#include "experiments/workload.h"

namespace penstock::experiments {

class Tenants {
 public:
  /// Where tenant `index` has its control socket.
  [[nodiscard]] static std::string control_of(const Workplace& folder, std::size_t index);

  /// Its chain file, which is its name for the proxy.
  [[nodiscard]] static std::string chain_of(const Workplace& folder, std::size_t index);

  /// Returns when packets flow in all of them. `program`: the words before a chain file. `chains`: one for each tenant.
  /// The error says why one of them does not run.
  [[nodiscard]] static Result<std::unique_ptr<Tenants>> start(const Words& program,
                                                              const std::vector<std::string>& chains,
                                                              const Workplace& folder, const std::atomic<bool>& stop);

  /// What each has done by now. Fails if one has ended.
  [[nodiscard]] Result<std::vector<Usage>> look();

  /// Ends all of them. Fails if one reports an error.
  [[nodiscard]] Result<void> end();

 private:
  struct Tenant {
    Program program;
    std::string output;
    std::optional<RunSocket> run;
  };

  explicit Tenants(std::string folder) : folder_(std::move(folder)) {}

  const std::string folder_;
  std::vector<Tenant> tenants_;
};

}  // namespace penstock::experiments
