// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Loads tables of functions at the proxy for the lanes of other processes. It is a tenant as long as there are some.

#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>

#include "function/granted_stage.h"
#include "proxy/connection.h"

namespace penstock::proxy {

class TableGranter final : public function::TableGranter {
 public:
  /// `kernels`: those of the proxy, which is of the same release.
  TableGranter(std::string path, TenantWish wish, std::span<const function::RemoteKernel> kernels)
      : path_(std::move(path)), wish_(std::move(wish)), kernels_(kernels) {}

  std::optional<function::StageNeeds> needs_of(const function::StageRecipe& recipe) const override;
  Result<std::unique_ptr<function::GrantedTables>> grant(const function::StageRecipe& recipe) override;

 private:
  [[nodiscard]] Result<std::shared_ptr<Connection>> connect();

  const std::string path_;
  const TenantWish wish_;
  const std::span<const function::RemoteKernel> kernels_;
  std::mutex mutex_;                      // guards `connection_`; held while it is opened
  std::weak_ptr<Connection> connection_;  // of all tables that are granted
};

}  // namespace penstock::proxy
