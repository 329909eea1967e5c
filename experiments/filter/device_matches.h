// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Rates of many BPF programs on a device, by the engines of nf/filter/code.

#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "experiments/core_rates.h"
#include "nf/filter/bpf/program.h"

namespace penstock::experiments {

class DeviceMatches {
 public:
  /// `engine`: interpreter or code. `frames` are of kFrameBytes each (many_filters.h). Fails if the
  /// programs cannot be compiled here. Throws gpu::CudaError, as do the other functions.
  [[nodiscard]] static Result<std::unique_ptr<DeviceMatches>> make(int device, const std::string& engine,
                                                                   const std::vector<filter::Program>& programs,
                                                                   std::span<const std::uint8_t> frames);
  virtual ~DeviceMatches() = default;

  /// Frames per second, one rate for each repeat, by the host's clock: from pinned host memory to pinned host memory,
  /// in batches that use several streams in turn; or only the kernels, with frames and words in device memory.
  [[nodiscard]] virtual Result<std::vector<double>> rates(bool only_kernel, const Timing& timing) = 0;
  /// The words of all frames from the last measurement, as of match_frames().
  [[nodiscard]] virtual std::span<const std::uint32_t> words() const noexcept = 0;
};

}  // namespace penstock::experiments
