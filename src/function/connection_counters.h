// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Counters of connections, for the reports of functions that track them.

#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <mutex>
#include <nlohmann/json_fwd.hpp>
#include <tuple>
#include <type_traits>

#include "conntrack/table.h"

namespace penstock::function {

/// One worker's. Only the worker publishes; any thread may read.
class ConnectionCounters {
 public:
  void publish(const conntrack::Counters& counters) noexcept;
  [[nodiscard]] conntrack::Counters read() const noexcept;

 private:
  static_assert(std::is_trivially_copyable_v<conntrack::Counters>);
  static_assert(sizeof(conntrack::Counters) % sizeof(std::uint64_t) == 0);
  using Words = std::array<std::uint64_t, sizeof(conntrack::Counters) / sizeof(std::uint64_t)>;
  std::array<std::atomic<std::uint64_t>, std::tuple_size_v<Words>> words_{};
};

/// Those of all workers. Thread-safe.
class CountersOfWorkers {
 public:
  /// Owned, and valid as long as this is.
  [[nodiscard]] ConnectionCounters& add();
  /// The sums; `most_connections` is that of the workers' highest numbers.
  [[nodiscard]] conntrack::Counters sum() const;

 private:
  mutable std::mutex mutex_;  // guards the list
  std::deque<ConnectionCounters> workers_;
};

/// {"now", "most", "packets_of_known", …}, without translations and helpers.
[[nodiscard]] nlohmann::json report_of(const conntrack::Counters& counters);

}  // namespace penstock::function
