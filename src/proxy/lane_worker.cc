// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "proxy/lane_worker.h"

#include <pthread.h>
#include <sys/epoll.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <system_error>
#include <utility>

#include "base/yielder.h"
#include "gpu/cuda_error.h"

namespace penstock::proxy {

LaneWorker::LaneWorker(TenantState& tenant)
    : tenant_(tenant),
      own_wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      tenants_wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      both_(::epoll_create1(EPOLL_CLOEXEC)) {
  const auto watch = [&](int fd, std::uint32_t events) {
    epoll_event event{};
    event.events = events;
    return ::epoll_ctl(both_.get(), EPOLL_CTL_ADD, fd, &event) == 0;
  };
  if (!watch(own_wake_.get(), EPOLLIN) || !watch(tenants_wake_.get(), EPOLLIN | EPOLLET))
    throw std::system_error(errno, std::system_category(), "cannot make an eventfd");
  thread_ = std::thread([this] { run(); });
}

LaneWorker::~LaneWorker() {
  stops_.store(true);
  wake();
  thread_.join();
}

/// The thread lets others pass, so that they do not wait while it is busy.
template <typename Work>
auto LaneWorker::between_rounds(Work work) {
  wanted_.fetch_add(1);
  wake();
  const std::lock_guard lock(mutex_);
  wanted_.fetch_sub(1);
  return work();
}

void LaneWorker::add(std::uint32_t id, std::unique_ptr<ServedLane> lane) {
  between_rounds([&] { lanes_[id] = std::move(lane); });
}

std::unique_ptr<ServedLane> LaneWorker::remove(std::uint32_t id) {
  return between_rounds([&]() -> std::unique_ptr<ServedLane> {
    const auto found = lanes_.find(id);
    if (found == lanes_.end()) return nullptr;
    auto lane = std::move(found->second);
    lanes_.erase(found);
    return lane;
  });
}

void LaneWorker::run() noexcept {
  static_cast<void>(::pthread_setname_np(::pthread_self(), "lanes"));
  // If that fails, so do all launches.
  try {
    tenant_.backend.select();
  } catch (const gpu::CudaError&) {
  }
  constexpr unsigned kPolls = 64, kYields = 512;
  unsigned idle_rounds = 0;
  Yielder yielder;
  while (!stops_.load(std::memory_order_relaxed)) {
    while (wanted_.load(std::memory_order_relaxed) > 0) std::this_thread::yield();
    bool moved = false;
    bool all_idle = true;
    {
      const std::lock_guard lock(mutex_);
      const bool exchanges_tables = tenant_.exchanges_tables.load(std::memory_order_relaxed);
      for (auto& [id, lane] : lanes_) {
        if (exchanges_tables) lane->pass_boundary();
        if (!lane->idle()) moved |= lane->poll();
        all_idle &= lane->idle();
      }
      moved |= take_turns();
    }
    idle_rounds = moved ? 0 : idle_rounds + 1;
    if (idle_rounds > kYields && all_idle) {
      sleep();
      idle_rounds = 0;
    } else if (idle_rounds > kPolls) {
      yielder.yield();
    }
  }
  const std::lock_guard lock(mutex_);
  lanes_.clear();
}

/// Lanes without an order look for one, which they check, and fetch packets: for a bounded time and one such step more.
/// So a tenant with many lanes cannot keep the thread for long from seeing that batches on the device have ended, whose
/// bytes count until then, and from asking for those that wait.
bool LaneWorker::take_turns() noexcept {
  constexpr auto kLongest = 5 * Scheduler::kAskAgain;
  const auto until = std::chrono::steady_clock::now() + kLongest;
  auto next = lanes_.upper_bound(last_turn_);
  bool moved = false;
  for (std::size_t turn = 0; turn < lanes_.size(); ++turn, ++next) {
    if (next == lanes_.end()) next = lanes_.begin();
    if (!next->second->idle()) continue;
    last_turn_ = next->first;
    if (!next->second->poll()) continue;
    moved = true;
    if (std::chrono::steady_clock::now() >= until) break;
  }
  return moved;
}

/// Until a tenant wakes it. The time bounds what a tenant loses that does not.
void LaneWorker::sleep() noexcept {
  constexpr int kLongestMs = 20;
  const std::lock_guard lock(mutex_);
  for (auto& [id, lane] : lanes_) lane->set_sleeping(true);
  const bool none = std::ranges::none_of(lanes_, [](const auto& entry) { return entry.second->has_order(); });
  if (none && wanted_.load() == 0) {
    epoll_event event{};
    static_cast<void>(::epoll_wait(both_.get(), &event, 1, kLongestMs));
  }
  eventfd_t count = 0;
  static_cast<void>(::eventfd_read(own_wake_.get(), &count));
  for (auto& [id, lane] : lanes_) lane->set_sleeping(false);
}

}  // namespace penstock::proxy
