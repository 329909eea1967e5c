// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Takes a few items about packets out of running workers, such as their paths, for one recipient at a time. While
// nobody wants any, that costs workers one relaxed load. They never wait for the recipient.

#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

#include "packet/packet.h"

namespace penstock::run {

template <typename Item>
class Tap {
 public:
  /// What is wanted. Workers call the functions, several at once.
  struct Order {
    std::uint64_t items = 0;
    /// Empty: any packet.
    std::function<bool(PacketView)> chooses{};
    /// Must not wait for anybody.
    std::function<void(const Item&)> take{};
    /// Packets that were chosen but could not be followed. May be empty.
    std::function<void(std::uint64_t packets)> missed{};
  };

  Tap() = default;
  Tap(const Tap&) = delete;
  Tap& operator=(const Tap&) = delete;

  // Any thread may call these.

  /// False: another order has neither ended nor been given all its items.
  [[nodiscard]] bool begin(Order order) {
    const std::lock_guard lock(mutex_);
    if (session_ != nullptr && !session_->is_done()) return false;
    session_ = std::make_shared<Session>(*this, std::move(order));
    wants_more_.store(session_->order_.items > 0);
    return true;
  }
  /// Ends the last order, whose functions are not called any more once it has returned.
  void end() {
    std::shared_ptr<Session> ended;
    {
      const std::lock_guard lock(mutex_);
      wants_more_.store(false);
      ended.swap(session_);
    }
    if (ended != nullptr) ended->close();
  }

  // For workers.

  [[nodiscard]] bool wants_more() const noexcept { return wants_more_.load(std::memory_order_relaxed); }

  /// One order. It ends before the tap.
  class Session {
   public:
    Session(Tap& tap, Order order) : tap_(tap), order_(std::move(order)), left_(order_.items) {}

    /// If the packet is wanted, its number, from 1: the caller then gives one item. Empty: it is not.
    [[nodiscard]] std::optional<std::uint64_t> choose(PacketView packet) {
      std::uint64_t left = left_.load();
      if (left == 0 || !matches(packet)) return std::nullopt;
      while (!left_.compare_exchange_weak(left, left - 1)) {
        if (left == 0) return std::nullopt;
      }
      if (left == 1) tap_.all_taken(*this);
      return order_.items - left + 1;
    }
    void give(const Item& item) {
      const std::lock_guard lock(mutex_);
      ++given_;
      if (!closed_) order_.take(item);
    }
    /// Counts the packet as missed if it is wanted.
    void miss(PacketView packet) {
      if (left_.load() == 0 || !matches(packet)) return;
      const std::lock_guard lock(mutex_);
      if (!closed_ && order_.missed) order_.missed(1);
    }

   private:
    friend class Tap;
    [[nodiscard]] bool matches(PacketView packet) const { return !order_.chooses || order_.chooses(packet); }
    [[nodiscard]] bool is_done() {
      const std::lock_guard lock(mutex_);
      return given_ == order_.items;
    }
    void close() {
      const std::lock_guard lock(mutex_);
      closed_ = true;
    }

    Tap& tap_;
    const Order order_;
    std::atomic<std::uint64_t> left_;
    std::mutex mutex_;  // guards the next members, and calls of `take` and `missed`
    std::uint64_t given_ = 0;
    bool closed_ = false;
  };

  /// For one batch. Null: nothing is wanted any more.
  [[nodiscard]] std::shared_ptr<Session> join() {
    if (!wants_more()) return nullptr;
    const std::lock_guard lock(mutex_);
    return session_;
  }

 private:
  void all_taken(const Session& session) {
    const std::lock_guard lock(mutex_);
    if (session_.get() == &session) wants_more_.store(false);
  }

  std::atomic<bool> wants_more_{false};
  std::mutex mutex_;  // guards the next member
  std::shared_ptr<Session> session_;
};

}  // namespace penstock::run
