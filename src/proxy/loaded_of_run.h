// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// What the proxy has of a run, for all of its workers and lanes. Tables that change while the run goes on, such as
// routes that follow the kernel's, are followed by a thread:
//
//     function: table changes, change, change …     follower                               proxy
//     recipe_version() is another one ────────────▶ makes a recipe of the newest ────────▶ checks and loads it
//                                                    waits, longer than that has taken ◀── lanes use it
//
// So changes that come while an update is under way become one update, workers wait for nothing, and the proxy is kept
// busy for a part of the time only. Thread-safe.

#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <thread>

#include "function/network_function.h"
#include "proxy/connection.h"
#include "proxy/remote_lane.h"

namespace penstock::proxy {

class LoadedOfRun : public std::enable_shared_from_this<LoadedOfRun> {
 public:
  /// On one connection. Use it by a std::shared_ptr.
  explicit LoadedOfRun(std::shared_ptr<Connection> connection) : connection_(std::move(connection)) {}
  LoadedOfRun(const LoadedOfRun&) = delete;
  LoadedOfRun& operator=(const LoadedOfRun&) = delete;
  ~LoadedOfRun() = default;

  [[nodiscard]] const std::shared_ptr<Connection>& connection() const noexcept { return connection_; }
  /// Of ports and workers.
  [[nodiscard]] const std::shared_ptr<OpenMemories>& memories() const noexcept { return memories_; }
  /// The function's, which are sent once, and follow it while somebody has them. The function must outlive them. Throws
  /// gpu::CudaError; null: the function's stage cannot run in another process.
  [[nodiscard]] std::shared_ptr<const RemoteTables> tables_of(function::NetworkFunction& function);

 private:
  struct Followed {
    RemoteTables* tables = nullptr;           // exists as long as this entry does
    std::weak_ptr<const RemoteTables> users;  // expired: it is about to go
    std::optional<std::uint64_t> version;     // of the recipe; empty: it does not change
  };

  void forget(const function::NetworkFunction& function, const RemoteTables* tables) noexcept;
  void follow(const std::stop_token& stop);
  void update() noexcept;

  const std::shared_ptr<Connection> connection_;
  const std::shared_ptr<OpenMemories> memories_ = std::make_shared<OpenMemories>();
  std::mutex making_;  // held while tables are made, which may take a minute, so that none are sent twice
  // Guards `followed_`. Held while tables are exchanged, so that no function ends meanwhile.
  std::mutex mutex_;
  std::map<const function::NetworkFunction*, Followed> followed_;
  std::jthread follower_;  // begins with the first tables that change; last: uses all others
};

}  // namespace penstock::proxy
