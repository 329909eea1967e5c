// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// How a worker gets something new to work with, such as the stages of the next epoch, and gives back what it has worked
// with until then, for the other thread to destroy. Neither thread waits for the other.

#pragma once

#include <atomic>
#include <memory>
#include <utility>

namespace penstock::run {

template <typename Set>
class Succession {
 public:
  Succession() = default;
  Succession(const Succession&) = delete;
  Succession& operator=(const Succession&) = delete;
  ~Succession() {
    delete next_.load();
    delete ended_.load();
  }

  // In the other thread.

  /// Call it again only once `take_ended` has returned something.
  void offer(std::unique_ptr<Set> next) noexcept { next_.store(next.release()); }
  /// The former set or, if the worker is `over` and has not begun with it, the next one. Null: there is none yet.
  [[nodiscard]] std::unique_ptr<Set> take_ended(bool over) noexcept {
    if (Set* const ended = ended_.exchange(nullptr)) return std::unique_ptr<Set>(ended);
    return std::unique_ptr<Set>(over ? next_.exchange(nullptr) : nullptr);
  }

  // In the worker's thread.

  /// Whether `advance` has something to do.
  [[nodiscard]] bool is_due() const noexcept { return changes_ || next_.load(std::memory_order_relaxed) != nullptr; }
  /// Whether the worker has begun with a set and not yet given back the former one.
  [[nodiscard]] bool changes() const noexcept { return changes_; }
  /// Calls `begin(next)`, and gives back what `take_ended()` returns, which may take several calls.
  template <typename Begin, typename TakeEnded>
  void advance(Begin begin, TakeEnded take_ended) noexcept {
    if (!changes_) {
      std::unique_ptr<Set> next(next_.exchange(nullptr));
      if (next == nullptr) return;  // taken back
      begin(std::move(next));
      changes_ = true;
    }
    std::unique_ptr<Set> ended = take_ended();
    if (ended == nullptr) return;
    ended_.store(ended.release());
    changes_ = false;
  }

 private:
  std::atomic<Set*> next_{nullptr};  // owned, like the next one
  std::atomic<Set*> ended_{nullptr};
  bool changes_ = false;  // of the worker's thread
};

}  // namespace penstock::run
