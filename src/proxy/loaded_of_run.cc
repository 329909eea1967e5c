// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "proxy/loaded_of_run.h"

#include <pthread.h>

#include <algorithm>
#include <exception>
#include <utility>

#include "base/log.h"
#include "base/stoppable_wait.h"
#include "function/granted_stage.h"
#include "gpu/cuda_error.h"

namespace penstock::proxy {

namespace {

using Clock = std::chrono::steady_clock;

/// Between looks at the functions: so long may a change wait.
constexpr std::chrono::milliseconds kShortestPause{10};
constexpr std::chrono::seconds kLongestPause{5};
/// A pause is so many times as long as the update before it, of which the proxy and its device then have a fifth of the
/// time at most.
constexpr int kPauses = 4;

}  // namespace

std::shared_ptr<const RemoteTables> LoadedOfRun::tables_of(function::NetworkFunction& function) {
  const std::lock_guard one_at_a_time(making_);
  {
    const std::lock_guard lock(mutex_);
    const auto known = followed_.find(&function);
    if (known != followed_.end()) {
      if (auto tables = known->second.users.lock()) return tables;
      followed_.erase(known);  // those that are about to go are not meant any more
    }
  }
  // The version first: if the recipe is newer, it is only sent once more.
  const auto version = function.recipe_version();
  std::unique_ptr<RemoteTables> made;
  if (function::GrantedStage* const granted = function::granted_stage_of(function)) {
    const auto token = granted->ask_for_token([&] { return connection_->is_lost(); });
    if (!token) throw gpu::CudaError(0, to_string(token.error()));
    made = std::make_unique<RemoteTables>(connection_, *token, *granted->stage_needs());
  } else if (const auto recipe = function.stage_recipe(function::Processor::gpu)) {
    made = std::make_unique<RemoteTables>(connection_, *recipe);
  } else {
    return nullptr;
  }
  if (version && !follower_.joinable()) follower_ = std::jthread([this](const std::stop_token& stop) { follow(stop); });
  RemoteTables* const tables = made.get();
  // The last user's thread waits in `forget` while the follower uses the function.
  std::shared_ptr<const RemoteTables> users(made.release(),
                                            [self = shared_from_this(), of = &function](const RemoteTables* ended) {
                                              self->forget(*of, ended);
                                              delete ended;
                                            });
  const std::lock_guard lock(mutex_);
  followed_[&function] = {tables, users, version};
  return users;
}

void LoadedOfRun::forget(const function::NetworkFunction& function, const RemoteTables* tables) noexcept {
  const std::lock_guard lock(mutex_);
  const auto found = followed_.find(&function);
  if (found != followed_.end() && found->second.tables == tables) followed_.erase(found);
}

void LoadedOfRun::follow(const std::stop_token& stop) {
  static_cast<void>(::pthread_setname_np(::pthread_self(), "table-follower"));
  Clock::duration pause = kShortestPause;
  while (wait_unless_stopped(stop, pause)) {
    const Clock::time_point begun = Clock::now();
    update();
    pause = std::clamp<Clock::duration>(kPauses * (Clock::now() - begun), kShortestPause, kLongestPause);
  }
}

/// Sends what has changed. If the proxy does not take it, its lanes must not go on with the former tables: the run
/// leaves the proxy, and comes back with the new ones, for which there is room then.
void LoadedOfRun::update() noexcept {
  const std::lock_guard lock(mutex_);
  try {
    for (auto& [function, followed] : followed_) {
      if (!followed.version || connection_->is_lost()) continue;
      const auto version = function->recipe_version();
      if (version == followed.version) continue;
      const auto recipe = function->stage_recipe(function::Processor::gpu);
      if (recipe) followed.tables->replace(*recipe);
      followed.version = version;
    }
  } catch (const std::exception& error) {
    if (connection_->is_lost()) return;
    log_warning("the proxy cannot exchange tables, so this run connects to it anew: {}", error.what());
    connection_->end(Connection::Loss::cannot_exchange);
  }
}

}  // namespace penstock::proxy
