// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// NVIDIA's Multi-Process Service: a daemon by which kernels of several processes run on a GPU at the same time. Owns a
// daemon with a folder of its own, so that other processes of the machine do not use it.

#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <utility>

#include "base/error.h"
#include "experiments/program.h"
#include "experiments/sharing/started.h"
#include "experiments/workload.h"

namespace penstock::experiments {

class Mps {
 public:
  /// Returns when the daemon answers. Fails without `nvidia-cuda-mps-control`.
  [[nodiscard]] static Result<std::unique_ptr<Mps>> start(const Workplace& folder, const std::atomic<bool>& stop);
  Mps(const Mps&) = delete;
  Mps& operator=(const Mps&) = delete;
  /// Its clients must have ended: those that have not are ended with it.
  ~Mps();

  /// Words before those of a program that is to be a client. `percent`: of the GPU's threads that its kernels may use,
  /// which the driver rounds up to whole multiprocessors; 100: all.
  [[nodiscard]] Words client(unsigned percent = 100) const;

 private:
  Mps(Program daemon, Words client, std::string output)
      : daemon_(std::move(daemon)), client_(std::move(client)), output_(std::move(output)) {}

  Program daemon_;
  const Words client_;
  const std::string output_;
};

}  // namespace penstock::experiments
