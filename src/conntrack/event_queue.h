// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The beginnings, changes and ends of a worker's connections on their way to one reader in another thread. Bounded, and
// lock-free: what finds no room is counted as lost. While nobody reads, it costs the worker one relaxed load each.

#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>

#include "conntrack/record.h"

namespace penstock::conntrack {

enum class EventKind : std::uint8_t { begun, changed, ended };

struct Event {
  EventKind kind = EventKind::begun;
  Record record;
};

class EventQueue {
 public:
  static constexpr std::uint32_t kCapacity = 4096;  // a power of two

  // For the worker.

  [[nodiscard]] bool wanted() const noexcept { return wanted_.load(std::memory_order_acquire); }
  /// Only while it is wanted.
  void add(EventKind kind, const Connection& connection, std::uint64_t remaining_ns) noexcept {
    const std::uint32_t at = added_.load(std::memory_order_relaxed);
    if (at - taken_.load(std::memory_order_acquire) == kCapacity) {
      lost_.store(lost_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
      return;
    }
    (*events_)[at % kCapacity] = {kind, record_of(connection, remaining_ns)};
    added_.store(at + 1, std::memory_order_release);
  }

  // For the reader: one thread at a time.

  /// From now on, events come. Memory for them stays until the queue ends.
  void begin() {
    if (events_ == nullptr) events_ = std::make_unique<Events>();
    taken_.store(added_.load(std::memory_order_acquire), std::memory_order_release);
    lost_before_ = lost_.load(std::memory_order_relaxed);
    wanted_.store(true, std::memory_order_release);
  }
  void end() noexcept { wanted_.store(false, std::memory_order_relaxed); }
  /// The oldest one. False: there is none.
  [[nodiscard]] bool take(Event& event) noexcept {
    const std::uint32_t at = taken_.load(std::memory_order_relaxed);
    if (at == added_.load(std::memory_order_acquire)) return false;
    event = (*events_)[at % kCapacity];
    taken_.store(at + 1, std::memory_order_release);
    return true;
  }
  /// How many were lost since the last call.
  [[nodiscard]] std::uint64_t take_lost() noexcept {
    const std::uint64_t before = lost_before_;
    lost_before_ = lost_.load(std::memory_order_relaxed);
    return lost_before_ - before;
  }

 private:
  using Events = std::array<Event, kCapacity>;
  std::unique_ptr<Events> events_;  // set before `wanted_`
  std::atomic<bool> wanted_{false};
  alignas(64) std::atomic<std::uint32_t> added_{0};
  std::atomic<std::uint64_t> lost_{0};
  alignas(64) std::atomic<std::uint32_t> taken_{0};
  std::uint64_t lost_before_ = 0;  // the reader's
};

}  // namespace penstock::conntrack
