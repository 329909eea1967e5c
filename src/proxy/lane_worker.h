// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The thread that polls the lanes of one worker of a tenant, as that worker would. It sleeps when none of them has an
// order for a while.

#pragma once

#include <sys/eventfd.h>

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <thread>

#include "port/live/file_descriptor.h"
#include "proxy/served_lane.h"

namespace penstock::proxy {

class LaneWorker {
 public:
  /// Throws std::system_error.
  explicit LaneWorker(TenantState& tenant);
  LaneWorker(const LaneWorker&) = delete;
  LaneWorker& operator=(const LaneWorker&) = delete;
  /// Stops the thread, then ends the lanes.
  ~LaneWorker();

  void add(std::uint32_t id, std::unique_ptr<ServedLane> lane);
  /// Null: there is no such lane.
  [[nodiscard]] std::unique_ptr<ServedLane> remove(std::uint32_t id);
  /// An eventfd that the tenant writes to wake the thread.
  [[nodiscard]] int wake_fd() const noexcept { return tenants_wake_.get(); }

 private:
  void run() noexcept;
  bool take_turns() noexcept;
  void sleep() noexcept;
  void wake() noexcept { static_cast<void>(::eventfd_write(own_wake_.get(), 1)); }
  template <typename Work>
  auto between_rounds(Work work);

  TenantState& tenant_;
  port::FileDescriptor own_wake_;  // an eventfd
  // The tenant can read this one, fill it, and let it block. So the proxy only watches it, for edges.
  port::FileDescriptor tenants_wake_;
  port::FileDescriptor both_;        // an epoll instance
  std::mutex mutex_;                 // guards `lanes_`; the thread has it for a round
  std::atomic<unsigned> wanted_{0};  // by other threads
  std::map<std::uint32_t, std::unique_ptr<ServedLane>> lanes_;
  std::uint32_t last_turn_ = 0;  // the lane whose turn was last
  std::atomic<bool> stops_{false};
  std::thread thread_;  // last: uses all others
};

}  // namespace penstock::proxy
