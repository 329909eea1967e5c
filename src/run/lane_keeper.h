// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Watches the device of another process, and connects to it again when it is lost, in a thread of its own. The workers
// go on with their CPU twins meanwhile:
//
//     keeper                                  worker
//     the connection is lost                  batches in flight fail, the twins finish them and all later ones
//     connects, after growing pauses
//     makes lanes with the present tables
//     offers them ──────────────────────────▶ between two batches: uses them
//     destroys the former ones ◀───────────── the former ones

#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>

#include "report/run_report.h"
#include "run/lane_factory.h"

namespace penstock::run {

/// Between attempts to connect. Each pause is twice as long as the one before.
struct Pauses {
  std::chrono::milliseconds first{100};
  std::chrono::milliseconds longest{5'000};
  std::chrono::milliseconds incompatible{60'000};  // the other process is of another release
  // A connection that has lasted for so long is not counted as an attempt: the pauses begin anew when it is lost.
  std::chrono::milliseconds steady{10'000};
};

class LaneKeeper {
 public:
  /// Makes lanes for all workers, and returns when they use them, or when `stop` is requested. Throws gpu::CudaError.
  using Renew = std::function<void(const std::stop_token& stop)>;

  /// Borrows the device. Throws std::system_error.
  LaneKeeper(RemoteDevice& device, Renew renew, const Pauses& pauses = {});
  LaneKeeper(const LaneKeeper&) = delete;
  LaneKeeper& operator=(const LaneKeeper&) = delete;
  ~LaneKeeper() { stop(); }

  /// Waits for no answer of the other process. Afterwards the keeper does nothing any more.
  void stop() noexcept;
  /// Any thread may call it.
  [[nodiscard]] report::RunReport::Proxy use() const;

 private:
  using Clock = std::chrono::steady_clock;

  void keep(const std::stop_token& stop);
  void find_again(const std::stop_token& stop);
  [[nodiscard]] tl::expected<void, NotConnected> connect_again(const std::stop_token& stop);
  void note_loss();
  std::chrono::nanoseconds note_return();

  RemoteDevice& device_;
  const Renew renew_;
  const Pauses pauses_;
  std::chrono::milliseconds pause_;           // before the next attempt
  mutable std::mutex mutex_;                  // guards the next two members
  std::optional<Clock::time_point> lost_at_;  // empty: it is connected
  report::RunReport::Proxy past_;             // without the present loss
  std::jthread thread_;                       // last: uses all others
};

}  // namespace penstock::run
