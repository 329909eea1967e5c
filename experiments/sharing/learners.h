// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Processes that train a convolutional neural network on the GPU with PyTorch, as Chaurasia's other tenants do with
// TensorFlow: a ResNet on random images of CIFAR's size. Owns the processes, which also end when this one does, after
// the step that they are in: a client of MPS that ends within a kernel may disturb the others.

#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "experiments/program.h"
#include "experiments/sharing/started.h"
#include "experiments/workload.h"

namespace penstock::experiments {

class Learners {
 public:
  /// Returns when each has made some steps, or fails after two minutes. `before`: words before `python3`. Fails without
  /// python3, PyTorch, or a GPU that PyTorch can use; the error says which.
  [[nodiscard]] static Result<std::unique_ptr<Learners>> start(unsigned count, const Words& before, int gpu,
                                                               const Workplace& folder, const std::atomic<bool>& stop);

  /// Whether they were started with these words, are this many, and all still run.
  [[nodiscard]] bool are(unsigned count, const Words& before);

  /// Training steps of one process, and when it finished the last of them, in seconds of the monotonic clock.
  struct Progress {
    double time_s = 0;
    double steps = 0;
  };
  /// Of each. Fails if one has ended; the error says why.
  [[nodiscard]] Result<std::vector<Progress>> progress();

 private:
  Learners(Words before, std::string folder) : before_(std::move(before)), folder_(std::move(folder)) {}

  const Words before_;
  const std::string folder_;
  std::vector<Program> programs_;
  std::vector<std::string> files_;    // of their progress
  std::vector<std::string> outputs_;  // what they print
};

/// The line that a learner writes: "123.456789 42".
[[nodiscard]] Learners::Progress parse_progress(const std::string& text);

/// Steps per second of all together. Those that finished no step have none.
[[nodiscard]] double steps_per_second(const std::vector<Learners::Progress>& begin,
                                      const std::vector<Learners::Progress>& end);

}  // namespace penstock::experiments
