// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// A simulated device that gives out sequence numbers: counters in the host's memory.

#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "nf/ipsec/numbers/device_numbers.h"

namespace penstock::ipsec::testing {

class PlayedDevice final : public DeviceNumbers {
 public:
  static inline PlayedDevice* last = nullptr;
  PlayedDevice() { last = this; }

  int device() const noexcept override { return 0; }
  void add(std::uint32_t count) override {
    const std::lock_guard lock(mutex_);
    cells.resize(cells.size() + count);
  }
  View join(std::span<const std::uint32_t> of_function) override {
    const auto sas = static_cast<std::uint32_t>(of_function.size());
    const auto& view = views[++last_view_] = std::make_unique<unsigned long long>();
    joined.emplace_back(of_function.begin(), of_function.end());
    return {nullptr, view.get(), nullptr, sas};
  }
  void leave(const View& view) noexcept override {
    std::erase_if(views, [&](const auto& there) { return there.second.get() == view.published; });
  }
  void settle() override {}
  void start(std::uint32_t cell, const NumberCell& numbers) noexcept override {
    NumberCell& there = at(cell);
    std::atomic_ref(there.most) = numbers.most;
    std::atomic_ref(there.sent) = numbers.sent;
    std::atomic_ref(there.reserved) = numbers.reserved;
  }
  bool take(std::uint32_t cell, std::uint32_t count, SequenceRange& taken) noexcept override {
    if (is_broken) return false;
    taken = kernel_takes(cell, count);
    return true;
  }
  void reserve(std::uint32_t cell, std::uint64_t end) noexcept override { std::atomic_ref(at(cell).reserved) = end; }
  void close() noexcept override { is_closed = true; }
  std::uint64_t published(std::uint32_t cell) const noexcept override {
    const std::lock_guard lock(mutex_);
    return std::atomic_ref(const_cast<NumberCell&>(cells[cell]).sent);
  }

  /// What a batch does on any device; mirrors `take_numbers` of number_kernel.cuh.
  SequenceRange kernel_takes(std::uint32_t cell, std::uint32_t count) {
    NumberCell& there = at(cell);
    const std::uint64_t reserved = std::atomic_ref(there.reserved);
    const std::atomic_ref sent(there.sent);
    unsigned long long seen = sent;
    for (;;) {
      const auto taken = static_cast<std::uint32_t>(
          std::min<std::uint64_t>(count, reserved - std::min<std::uint64_t>(reserved, seen)));
      if (sent.compare_exchange_strong(seen, seen + taken)) return {seen + 1, taken};
    }
  }

  std::deque<NumberCell> cells;
  std::map<unsigned, std::unique_ptr<unsigned long long>> views;  // of stages that have not left
  std::vector<std::vector<std::uint32_t>> joined;                 // the cells of each view, also of those that left
  bool is_broken = false, is_closed = false;

 private:
  NumberCell& at(std::uint32_t cell) {
    const std::lock_guard lock(mutex_);
    return cells[cell];
  }

  mutable std::mutex mutex_;
  unsigned last_view_ = 0;
};

inline std::unique_ptr<DeviceNumbers> play_device() { return std::make_unique<PlayedDevice>(); }

}  // namespace penstock::ipsec::testing
