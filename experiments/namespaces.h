// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The network namespaces of an experiment, made with iproute2. Owns them: their names have this process's number, and
// they are removed with the object, together with their interfaces.

#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "experiments/workload.h"

namespace penstock::experiments {

class NetworkNamespaces {
 public:
  /// One for each role, such as "client". Fails without the privileges, `ip`, or one of `programs`, whose packages have
  /// the same names. Borrows the folder for what programs print.
  [[nodiscard]] static Result<std::unique_ptr<NetworkNamespaces>> make(const Workplace& folder,
                                                                       std::vector<std::string> roles,
                                                                       const std::vector<std::string>& programs = {});
  NetworkNamespaces(const NetworkNamespaces&) = delete;
  NetworkNamespaces& operator=(const NetworkNamespaces&) = delete;
  ~NetworkNamespaces();

  /// "penstock-PID-client", as `ip netns` names it.
  [[nodiscard]] static std::string name(std::string_view role);

  /// Runs `ip` with these arguments.
  [[nodiscard]] Result<void> ip(const std::vector<std::string>& words) const;
  /// Runs it for each list of arguments, until one fails.
  [[nodiscard]] Result<void> ip_all(const std::vector<std::vector<std::string>>& steps) const;

 private:
  NetworkNamespaces(const Workplace& folder, std::vector<std::string> roles)
      : folder_(folder), roles_(std::move(roles)) {}

  const Workplace& folder_;
  const std::vector<std::string> roles_;
};

}  // namespace penstock::experiments
