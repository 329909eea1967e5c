// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Runs somebody else's kernel over one batch after another. A device makes launchers, one for each worker, which own
// their memory. The device is a GPU (gpu_device.h), or a host that stands for one in tests.

#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "function/kernel_abi.h"

namespace penstock::kernel {

inline constexpr std::size_t kMostPackets = 1024;                       // of a launch
inline constexpr std::size_t kFramesBytes = std::size_t{2} << 20;       // ditto
inline constexpr std::size_t kMostFrameBytes = std::size_t{256} << 10;  // of a frame, on the device
inline constexpr std::size_t kFrameAlignment = 16;
static_assert(kFramesBytes % kFrameAlignment == 0 && kMostFrameBytes < kFramesBytes);

class Launcher {
 public:
  virtual ~Launcher() = default;

  /// Host memory for a batch: kMostPackets packets and verdicts, and kFramesBytes of frames.
  struct Room {
    std::span<penstock_packet> packets;
    std::span<std::uint8_t> frames;
    std::span<penstock_verdict> verdicts;
  };
  [[nodiscard]] virtual const Room& room() noexcept = 0;
  /// Runs the kernel over the first `count` packets, whose frames end at `frames_bytes`, and waits. Verdicts are
  /// undecided before. Afterwards the room has the verdicts, and the frames if the kernel writes them. False: it
  /// failed, and so will all later calls. `count` is not 0.
  [[nodiscard]] virtual bool run(std::size_t count, std::size_t frames_bytes) noexcept = 0;
  /// Why it failed; "": it has not.
  [[nodiscard]] virtual std::string_view failure() const noexcept = 0;
};

/// With the module, its parameters and its table in place. Outlives its launchers.
class Device {
 public:
  virtual ~Device() = default;
  /// For the thread that will call it, or another one. `writes`: the kernel writes frames. Throws gpu::CudaError.
  [[nodiscard]] virtual std::unique_ptr<Launcher> make_launcher(bool writes) = 0;
};

}  // namespace penstock::kernel
