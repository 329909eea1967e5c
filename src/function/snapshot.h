// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// A table that all workers read and that is replaced while they run. For readers, it costs one atomic load and one
// store per batch. The publisher waits until no reader uses the old table and gets it back, so that it can apply the
// same change to it and publish it next (left-right). So an update costs two small changes instead of a copy of the
// table.

#pragma once

#include <atomic>
#include <cassert>
#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

namespace penstock::function {

template <typename T>
class Snapshot {
 public:
  explicit Snapshot(std::unique_ptr<const T> first) noexcept : current_(first.release()) {}
  Snapshot(const Snapshot&) = delete;
  Snapshot& operator=(const Snapshot&) = delete;
  ~Snapshot() {
    assert(readers_.empty());
    delete current_.load();
  }

  /// One worker's access to the table. The snapshot must outlive it.
  class Reader {
   public:
    explicit Reader(Snapshot& owner) : owner_(&owner) {
      const std::lock_guard lock(owner.mutex_);
      owner.readers_.push_back(this);
      refresh();
    }
    Reader(const Reader&) = delete;
    Reader& operator=(const Reader&) = delete;
    ~Reader() {
      const std::lock_guard lock(owner_->mutex_);
      std::erase(owner_->readers_, this);
    }

    /// Switches to the newest table and releases the previous one. Call it at a batch boundary.
    void refresh() noexcept {
      // The store must be visible before the next check, or the publisher could miss it.
      const T* seen = owner_->current_.load(std::memory_order_acquire);
      for (;;) {
        held_.store(seen, std::memory_order_seq_cst);
        const T* now = owner_->current_.load(std::memory_order_seq_cst);
        if (now == seen) return;
        seen = now;
      }
    }
    [[nodiscard]] const T& table() const noexcept { return *held_.load(std::memory_order_relaxed); }

   private:
    friend class Snapshot;
    Snapshot* owner_;
    std::atomic<const T*> held_{nullptr};
  };

  /// Publishes `next`, which readers use from their next batch boundary. Returns the previous table once no reader
  /// holds it. Blocks until all readers pass a batch boundary, so do not call it on the packet path. One publisher at a
  /// time.
  [[nodiscard]] std::unique_ptr<const T> publish(std::unique_ptr<const T> next) {
    return publish(std::move(next), [] {});
  }
  /// The same, and calls `meanwhile()` before each look at the readers, for those that no worker uses.
  template <typename Meanwhile>
  [[nodiscard]] std::unique_ptr<const T> publish(std::unique_ptr<const T> next, Meanwhile meanwhile) {
    constexpr unsigned kYields = 64;
    unsigned tries = 0;
    std::unique_ptr<const T> before(current_.exchange(next.release(), std::memory_order_seq_cst));
    for (;;) {
      meanwhile();
      {
        const std::lock_guard lock(mutex_);
        bool held = false;
        for (const Reader* reader : readers_) held |= reader->held_.load(std::memory_order_seq_cst) == before.get();
        if (!held) return before;
      }
      // Workers pass a boundary within microseconds under load, and every 20 ms when they sleep.
      if (++tries < kYields) {
        std::this_thread::yield();
      } else {
        std::this_thread::sleep_for(std::chrono::microseconds(200));
      }
    }
  }

  /// The newest table, for threads that are not workers (reports, tests). Valid until the next `publish`.
  [[nodiscard]] const T& newest() const noexcept { return *current_.load(std::memory_order_acquire); }

 private:
  std::atomic<const T*> current_;
  mutable std::mutex mutex_;  // guards readers_; taken only at set-up and for publishing
  std::vector<Reader*> readers_;
};

}  // namespace penstock::function
