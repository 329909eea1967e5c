// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "function/connection_counters.h"

#include <bit>
#include <nlohmann/json.hpp>

namespace penstock::function {

void ConnectionCounters::publish(const conntrack::Counters& counters) noexcept {
  const auto words = std::bit_cast<Words>(counters);
  for (std::size_t i = 0; i < words.size(); ++i) words_[i].store(words[i], std::memory_order_relaxed);
}

conntrack::Counters ConnectionCounters::read() const noexcept {
  Words words;
  for (std::size_t i = 0; i < words.size(); ++i) words[i] = words_[i].load(std::memory_order_relaxed);
  return std::bit_cast<conntrack::Counters>(words);
}

ConnectionCounters& CountersOfWorkers::add() {
  const std::lock_guard lock(mutex_);
  return workers_.emplace_back();
}

conntrack::Counters CountersOfWorkers::sum() const {
  const std::lock_guard lock(mutex_);
  conntrack::Counters sum;
  for (const ConnectionCounters& of_worker : workers_) {
    const conntrack::Counters more = of_worker.read();
    sum.connections += more.connections;
    sum.most_connections += more.most_connections;
    sum.found += more.found;
    sum.begun += more.begun;
    sum.confirmed += more.confirmed;
    sum.related += more.related;
    sum.untracked += more.untracked;
    for (std::size_t i = 0; i < sum.invalid.size(); ++i) sum.invalid[i] += more.invalid[i];
    sum.early_drops += more.early_drops;
    sum.expired += more.expired;
    sum.ended += more.ended;
    sum.over_block_limit += more.over_block_limit;
    sum.no_free_block += more.no_free_block;
    sum.without_ports += more.without_ports;
    sum.expectations += more.expectations;
    sum.announced += more.announced;
    sum.arrived += more.arrived;
    sum.expectations_expired += more.expectations_expired;
    sum.incomplete_announcements += more.incomplete_announcements;
    sum.unexpected += more.unexpected;
  }
  return sum;
}

nlohmann::json report_of(const conntrack::Counters& counters) {
  nlohmann::json report = {{"now", counters.connections},        {"most", counters.most_connections},
                           {"packets_of_known", counters.found}, {"packets_that_begin", counters.begun},
                           {"confirmed", counters.confirmed},    {"related", counters.related},
                           {"untracked", counters.untracked},    {"made_room", counters.early_drops},
                           {"expired", counters.expired},        {"ended", counters.ended}};
  for (std::size_t i = 0; i < counters.invalid.size(); ++i) {
    if (counters.invalid[i] > 0) report["invalid"][conntrack::kReasonNames[i]] = counters.invalid[i];
  }
  return report;
}

}  // namespace penstock::function
