// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// NVIDIA's Multi-Process Service for an experiment (gpu/mps.h), with a folder of its own, so that other processes of
// the machine do not use it.

#pragma once

#include <atomic>
#include <memory>
#include <utility>

#include "base/error.h"
#include "experiments/sharing/started.h"
#include "experiments/workload.h"
#include "gpu/mps.h"

namespace penstock::experiments {

class Mps {
 public:
  /// Returns when the daemon answers. Fails without `nvidia-cuda-mps-control`.
  [[nodiscard]] static Result<std::unique_ptr<Mps>> start(const Workplace& folder, const std::atomic<bool>& stop);

  /// Words before those of a program that is to be a client, and that must end before this does: it is ended otherwise.
  /// `percent`: of the GPU's threads that its kernels may use, which the driver rounds up to whole multiprocessors;
  /// 100: all.
  [[nodiscard]] Words client(unsigned percent = 100) const;

  explicit Mps(std::unique_ptr<gpu::Mps> daemon)
      : daemon_(std::move(daemon)), client_{"env", gpu::mps_environment(daemon_->folder())} {}

 private:
  const std::unique_ptr<gpu::Mps> daemon_;
  const Words client_;
};

}  // namespace penstock::experiments
