// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The connections of a run: the tables of all its workers, in all epochs. Functions that track connections offer them
// to operators (function/connection_keeper.h).

#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "base/keyed_hash.h"
#include "conntrack/port_blocks.h"
#include "conntrack/table_access.h"

namespace penstock::conntrack {

class ConnectionTables {
 public:
  ConnectionTables(const Options& options, Clock clock) : options_(options), clock_(clock) {}

  /// Enters these connections when the workers begin, each into the table of its worker, as far as there is room.
  /// `worker_of`: see Restored. Called before any worker is added.
  void restore(std::vector<SavedConnection> connections, decltype(Restored::worker_of) worker_of) {
    restored_ = std::make_shared<Restored>();
    restored_->connections = std::move(connections);
    restored_->worker_of = worker_of;
  }
  /// Tells `observer` which hosts get blocks of ports. Called before any worker is added.
  void observe(std::unique_ptr<BlockObserver> observer) { observer_ = std::move(observer); }
  /// The table of one more worker. Workers are added in their order, all before the first of them begins.
  [[nodiscard]] std::shared_ptr<TableAccess> add_worker() {
    const std::lock_guard lock(mutex_);
    if (options_.port_blocks && blocks_ == nullptr)
      blocks_ = std::make_shared<PortBlocks>(*options_.port_blocks, random_seed(), std::move(observer_));
    auto added = std::make_shared<TableAccess>(options_, clock_, blocks_);
    if (restored_ != nullptr) added->restore_later(restored_, restored_->workers.fetch_add(1));
    workers_.push_back(added);
    return added;
  }

  /// Of all workers; null: none. Thread-safe.
  [[nodiscard]] std::shared_ptr<PortBlocks> port_blocks() const {
    const std::lock_guard lock(mutex_);
    return blocks_;
  }
  /// Releases all blocks of ports. Only when no worker uses its table any more.
  void end();

  /// Thread-safe.
  [[nodiscard]] std::vector<std::shared_ptr<TableAccess>> workers() const {
    const std::lock_guard lock(mutex_);
    return workers_;
  }
  /// Calls `use(saved)` for all connections. Only when no worker uses its table any more.
  template <typename Use>
  void for_each_saved(Use&& use) const;

 private:
  const Options options_;
  const Clock clock_;
  std::shared_ptr<Restored> restored_;
  std::unique_ptr<BlockObserver> observer_;  // until there are blocks
  mutable std::mutex mutex_;                 // guards the next members; workers never take it
  std::shared_ptr<PortBlocks> blocks_;       // of all workers; null: none yet, or the options have none
  std::vector<std::shared_ptr<TableAccess>> workers_;
};

inline void ConnectionTables::end() {
  const std::shared_ptr<PortBlocks> blocks = port_blocks();
  if (blocks == nullptr) return;
  std::uint64_t time_ns = 0;
  for (const auto& worker : workers()) time_ns = std::max(time_ns, worker->table().packet_time_ns());
  blocks->end(time_ns);
}

template <typename Use>
void ConnectionTables::for_each_saved(Use&& use) const {
  constexpr std::uint32_t kPositions = 65'536;
  for (const auto& worker : workers()) {
    Table& table = worker->table();
    std::uint32_t from = 0;
    do {
      from = table.for_each(from, kPositions, [&](const Connection& connection) {
        use(saved_of(connection, table.remaining_ns(connection)));
      });
    } while (from != 0);
  }
}

}  // namespace penstock::conntrack
