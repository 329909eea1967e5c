// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The answer to a `conntrack` request, which comes in parts: as fast as workers serve it (conntrack/table_access.h) and
// the client takes it. An inquiry has a worker's access only while the worker serves it, and then copies of some
// records, so slow clients keep nobody waiting. Used by one thread.

#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "conntrack/connection_tables.h"
#include "control/line_server.h"
#include "control/request.h"
#include "run/run.h"

namespace penstock::control {

class ConnectionInquiry {
 public:
  /// What is wrong with the request, if anything.
  [[nodiscard]] static Result<std::unique_ptr<ConnectionInquiry>> make(
      const Request& request, const std::vector<run::TrackedConnections>& tracked);
  ConnectionInquiry(const ConnectionInquiry&) = delete;
  ConnectionInquiry& operator=(const ConnectionInquiry&) = delete;
  ~ConnectionInquiry();

  /// Only one inquiry at a time may do so.
  [[nodiscard]] bool follows_events() const noexcept { return action_ == Action::events; }
  /// `run_goes_on`: false: no worker serves requests any more.
  [[nodiscard]] LineHandler::Part next_part(bool run_goes_on);

  /// A worker that serves nothing for so long hangs.
  static constexpr std::chrono::seconds kLongestWait{10};

 private:
  using SteadyClock = std::chrono::steady_clock;
  enum class Action : std::uint8_t { list, save, count, flush, events };
  struct OfWorker {
    std::string function;
    std::shared_ptr<conntrack::TableAccess> access;
  };

  ConnectionInquiry(const Request& request, Action action, const conntrack::Filter& filter,
                    const std::vector<run::TrackedConnections>& tracked);
  [[nodiscard]] LineHandler::Part next_events(bool run_goes_on);
  [[nodiscard]] LineHandler::Part next_of_table();
  void take(const conntrack::TableAccess::Answer& answer);
  [[nodiscard]] std::string some_lines();
  [[nodiscard]] std::string some_saved();
  [[nodiscard]] bool is_done() const noexcept {
    return (at_ == tables_.size() && records_.empty() && saved_.empty()) || (limit_ && count_ >= *limit_);
  }
  [[nodiscard]] LineHandler::Part result() const;
  [[nodiscard]] LineHandler::Part failed(Failure kind, std::string message, std::string expected) const;

  const Json id_;
  const Action action_;
  const conntrack::Filter filter_;
  const std::optional<std::uint64_t> limit_;
  std::optional<SteadyClock::time_point> until_;
  std::vector<OfWorker> tables_;
  std::size_t at_ = 0;      // of `tables_`
  std::uint32_t from_ = 0;  // position in it
  bool asked_ = false;
  std::vector<conntrack::Record> records_;  // of `function_`
  std::vector<conntrack::SavedConnection> saved_;
  std::size_t used_ = 0;  // of them
  std::string function_;
  std::optional<SteadyClock::time_point> waits_since_;  // for a worker
  std::uint64_t count_ = 0;                             // connections or events
  std::array<std::uint64_t, 256> by_protocol_{};
  std::uint64_t lost_ = 0;  // events
};

}  // namespace penstock::control
