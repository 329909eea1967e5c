// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The thread in which a run's ports open and start. Capabilities belong to threads: if a process gives up its own, this
// thread alone keeps those that are needed to open interfaces, and it ends before the first packet.

#pragma once

#include <condition_variable>
#include <functional>
#include <future>
#include <mutex>
#include <optional>
#include <queue>
#include <thread>
#include <vector>

#include "base/capabilities.h"
#include "base/error.h"
#include "port/port.h"
#include "run/chain.h"

namespace penstock::run {

/// What the chain's ports need, all together. Empty: none of them is on an interface.
[[nodiscard]] std::optional<port::CapabilityNeeds> capability_needs(const Chain& chain);

class Opener {
 public:
  using Task = std::function<Result<void>()>;

  /// `keeps`: the capabilities to keep of those of the calling thread; empty: all. Throws std::system_error.
  explicit Opener(std::optional<std::vector<Capability>> keeps);
  /// Waits for the tasks.
  ~Opener();
  Opener(const Opener&) = delete;
  Opener& operator=(const Opener&) = delete;

  /// Runs the task in the thread, after those before it.
  [[nodiscard]] std::future<Result<void>> run(Task task);

 private:
  void work();

  std::mutex mutex_;  // guards the next two
  std::queue<std::packaged_task<Result<void>()>> tasks_;
  bool ends_ = false;
  std::condition_variable changed_;
  std::thread thread_;  // uses the others
};

}  // namespace penstock::run
