// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "conntrack/table_access.h"

#include <algorithm>
#include <chrono>

namespace penstock::conntrack {

namespace {

/// Positions of the table that one boundary looks at: some microseconds between batches, and some tens of them while no
/// packets come, when boundaries are rare.
constexpr std::uint32_t kPositionsWhileBusy = 256, kPositionsWhileIdle = 4096;
constexpr std::uint32_t kStep = 32;
/// A connection that is removed takes as long as so many positions: its neighbours in all lists are touched.
constexpr std::uint32_t kPositionsPerRemoval = 8;

std::uint64_t system_time_ns() noexcept {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(now).count());
}

}  // namespace

void TableAccess::pass_boundary() noexcept {
  const Counters& counters = table_.counters();
  const std::uint64_t tracked = counters.found + counters.begun + counters.related;
  const bool idle = tracked == tracked_before_;
  tracked_before_ = tracked;
  if (clock_ == Clock::system && idle) table_.expire(system_time_ns());
  if (restored_ != nullptr) restore();
  if (state_.load(std::memory_order_acquire) == State::asked) serve(idle);
}

void TableAccess::restore() noexcept {
  const unsigned workers = restored_->workers.load();
  for (const SavedConnection& saved : restored_->connections) {
    if (workers == 1 || restored_->worker_of(saved.record.original, workers) == worker_) table_.restore(saved);
  }
  if (restored_->done.fetch_add(1) + 1 == workers) restored_->connections = {};
  restored_.reset();
}

void TableAccess::serve(bool idle) noexcept {
  const bool lists = request_.kind == Request::Kind::list || request_.kind == Request::Kind::save;
  const std::uint32_t most = request_.kind == Request::Kind::list ? Answer::kMostRecords : Answer::kMostSaved;
  std::uint32_t budget = idle ? kPositionsWhileIdle : kPositionsWhileBusy;
  Answer& answer = *answer_;
  while (budget > 0) {
    const std::uint32_t room = lists ? most - answer.records : kStep;
    const std::uint32_t step = std::min({budget, kStep, room});
    removed_ = 0;
    answer.next = table_.for_each(answer.next, step, [this](Connection& connection) { serve_one(connection); });
    budget -= std::min(budget, step + removed_ * kPositionsPerRemoval);
    if (answer.next == 0 || (lists && answer.records == most)) {
      state_.store(State::answered, std::memory_order_release);
      return;
    }
  }
}

void TableAccess::serve_one(Connection& connection) noexcept {
  if (!request_.filter.matches(connection)) return;
  Answer& answer = *answer_;
  ++answer.by_protocol[connection.original.protocol];
  switch (request_.kind) {
    case Request::Kind::list:
      answer.record_array[answer.records++] = record_of(connection, table_.remaining_ns(connection));
      break;
    case Request::Kind::save:
      answer.saved_array[answer.records++] = saved_of(connection, table_.remaining_ns(connection));
      break;
    case Request::Kind::count: break;
    case Request::Kind::flush: table_.flush(connection); ++removed_;
  }
}

bool TableAccess::ask(const Request& request) {
  const State state = state_.load(std::memory_order_acquire);
  if (state == State::asked || (state == State::answered && !abandoned_)) return false;
  if (answer_ == nullptr) answer_ = std::make_unique<Answer>();
  abandoned_ = false;
  request_ = request;
  answer_->next = request.from;
  answer_->records = 0;
  answer_->by_protocol.fill(0);
  state_.store(State::asked, std::memory_order_release);
  return true;
}

void TableAccess::release() noexcept {
  if (answer() != nullptr) {
    state_.store(State::idle, std::memory_order_relaxed);
  } else {
    abandoned_ = true;
  }
}

}  // namespace penstock::conntrack
