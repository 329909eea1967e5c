// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "proxy/table_granter.h"

#include <algorithm>
#include <utility>

#include "gpu/cuda_error.h"
#include "proxy/problem.h"

namespace penstock::proxy {

namespace {

class Granted final : public function::GrantedTables {
 public:
  Granted(std::shared_ptr<Connection> connection, const function::StageRecipe& recipe)
      : connection_(std::move(connection)), tables_(connection_, recipe) {
    GrantTables request;
    request.tables = tables_.id();
    token_ = connection_->request(request).token;
  }
  const function::GrantToken& token() const noexcept override { return token_; }
  bool are_lost() noexcept override { return connection_->is_lost(); }

 private:
  const std::shared_ptr<Connection> connection_;
  const RemoteTables tables_;
  function::GrantToken token_{};
};

}  // namespace

std::optional<function::StageNeeds> TableGranter::needs_of(const function::StageRecipe& recipe) const {
  const auto kernel = std::ranges::find(kernels_, recipe.kernel, &function::RemoteKernel::name);
  if (kernel == kernels_.end() || kernel->needs == nullptr || !kernel->check(recipe)) return std::nullopt;
  return kernel->needs(recipe);
}

Result<std::unique_ptr<function::GrantedTables>> TableGranter::grant(const function::StageRecipe& recipe) {
  auto connection = connect();
  if (!connection) return failure(std::move(connection.error()));
  try {
    return std::make_unique<Granted>(std::move(*connection), recipe);
  } catch (const gpu::CudaError& error) {
    return failure(problem(error.what()));
  }
}

Result<std::shared_ptr<Connection>> TableGranter::connect() {
  const std::lock_guard lock(mutex_);
  if (auto connection = connection_.lock(); connection != nullptr && !connection->is_lost()) return connection;
  auto connection = Connection::open(path_, wish_);
  if (connection) connection_ = *connection;
  return connection;
}

}  // namespace penstock::proxy
