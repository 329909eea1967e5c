// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// A worker's table, and what another thread may ask about it. The worker owns the table, and serves a request at batch
// boundaries, in portions so small that no packet waits for them. The other thread never touches the table: it gets
// copies. With the first boundary, connections of an earlier run are entered.

#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "conntrack/event_queue.h"
#include "conntrack/filter.h"
#include "conntrack/options.h"
#include "conntrack/record.h"
#include "conntrack/table.h"

namespace penstock::conntrack {

/// The connections of an earlier run. The last worker to take its own frees their memory.
struct Restored {
  std::vector<SavedConnection> connections;
  unsigned (*worker_of)(const Tuple& original, unsigned workers) = nullptr;  // to which its packets come
  std::atomic<unsigned> workers{0}, done{0};
};

class TableAccess {
 public:
  /// `blocks`: as for the table.
  TableAccess(const Options& options, Clock clock, std::shared_ptr<PortBlocks> blocks = nullptr)
      : table_(options, std::move(blocks)), clock_(clock) {
    table_.tell(&events_);
  }
  TableAccess(const TableAccess&) = delete;
  TableAccess& operator=(const TableAccess&) = delete;

  // At set-up.

  /// With the first boundary. `worker`: 0 .. workers - 1.
  void restore_later(std::shared_ptr<Restored> restored, unsigned worker) noexcept {
    restored_ = std::move(restored);
    worker_ = worker;
  }

  // For the worker.

  [[nodiscard]] Table& table() noexcept { return table_; }
  [[nodiscard]] const Table& table() const noexcept { return table_; }
  /// Serves a part of the request, if there is one. Called at each batch boundary, also when no packets come.
  void pass_boundary() noexcept;

  // For another thread, one at a time.

  struct Request {
    enum class Kind : std::uint8_t { list, save, count, flush } kind = Kind::list;
    Filter filter{};
    std::uint32_t from = 0;  // position in the table
  };
  struct Answer {
    static constexpr std::uint32_t kMostRecords = 4096, kMostSaved = 1024;
    std::uint32_t next = 0;                                 // position to go on from; 0: that was all
    std::uint32_t records = 0;                              // of a list, or saved
    std::array<std::uint64_t, 256> by_protocol{};           // connections that match
    std::array<Record, kMostRecords> record_array{};        // of a list: the first `records` are valid
    std::array<SavedConnection, kMostSaved> saved_array{};  // ditto, if they are saved
  };
  /// False: another request is under way.
  [[nodiscard]] bool ask(const Request& request);
  /// Null: the worker is not done yet. Valid until `release`.
  [[nodiscard]] const Answer* answer() const noexcept {
    return state_.load(std::memory_order_acquire) == State::answered ? answer_.get() : nullptr;
  }
  /// The answer is not needed any more, whether it has come or not.
  void release() noexcept;

  [[nodiscard]] EventQueue& events() noexcept { return events_; }

 private:
  enum class State : std::uint8_t { idle, asked, answered };

  void restore() noexcept;
  void serve(bool idle) noexcept;
  void serve_one(Connection& connection) noexcept;

  Table table_;
  const Clock clock_;
  std::uint64_t tracked_before_ = 0;  // packets, up to the last boundary
  std::shared_ptr<Restored> restored_;
  unsigned worker_ = 0;
  EventQueue events_;
  // `request_` and `answer_` are the worker's while the state is `asked`, and otherwise the other thread's.
  std::atomic<State> state_{State::idle};
  bool abandoned_ = false;  // the other thread's: nobody waits for the answer
  Request request_;
  std::unique_ptr<Answer> answer_;  // from the first request on
  std::uint32_t removed_ = 0;       // in this step
};

}  // namespace penstock::conntrack
