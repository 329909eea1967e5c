// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// NVIDIA's Multi-Process Service: a daemon by which kernels of several processes run on a GPU at the same time. It is a
// program of the driver's package, with a folder for its pipes and logs, by which clients find it. Needs no CUDA.

#pragma once

#include <sys/types.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <string>

#include "base/error.h"

namespace penstock::gpu {

/// Whether the search path has the daemon.
[[nodiscard]] bool is_mps_installed();

/// What a client of the daemon with this folder must have in its environment: "CUDA_MPS_PIPE_DIRECTORY=/run/mps".
[[nodiscard]] std::string mps_environment(const std::string& folder);

/// This process becomes a client of the daemon there. Call it before threads start and before CUDA is used, which
/// would quietly go on without MPS if there were no daemon: that is an error here.
[[nodiscard]] Result<void> join_mps(const std::string& folder);

/// A daemon of this process.
class Mps {
 public:
  /// Returns when it answers; fails without the program, or when `stop` is set. The folder is made if it is missing. A
  /// daemon that an earlier program of this process has started there goes on (proxy/restart.h).
  [[nodiscard]] static Result<std::unique_ptr<Mps>> start(std::string folder, const std::atomic<bool>& stop);
  Mps(const Mps&) = delete;
  Mps& operator=(const Mps&) = delete;
  /// Ends it. Clients that are still there lose the GPU.
  ~Mps();

  [[nodiscard]] const std::string& folder() const noexcept { return folder_; }
  /// Clients that connect from now on have at most so many percent of the GPU's multiprocessors; those that have
  /// connected keep theirs. Call it once this process uses the GPU: there is a server then.
  [[nodiscard]] Result<void> limit_clients(unsigned percent) const;

 private:
  Mps(std::string folder, pid_t daemon) : folder_(std::move(folder)), daemon_(daemon) {}
  [[nodiscard]] bool has_ended() noexcept;
  [[nodiscard]] Result<void> wait_until_ready(const std::atomic<bool>& stop);

  const std::string folder_;
  pid_t daemon_;  // 0: it has ended
};

}  // namespace penstock::gpu
