// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// A host that stands for the device of a kernel, which is a function here.

#pragma once

#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "nf/kernel/launcher.h"

namespace penstock::kernel {

/// Called for each packet of a launch.
using HostKernel = std::function<void(const penstock_batch& batch, unsigned packet)>;

class HostDevice final : public Device {
 public:
  struct Launches {
    std::vector<std::size_t> packets;  // of each
    std::string failure;               // set by a test: the next launch fails
  };
  HostDevice(HostKernel kernel, Launches& launches) : kernel_(std::move(kernel)), launches_(launches) {}

  std::unique_ptr<Launcher> make_launcher(bool writes) override {
    return std::make_unique<HostLauncher>(kernel_, launches_, writes);
  }

 private:
  class HostLauncher final : public Launcher {
   public:
    HostLauncher(const HostKernel& kernel, Launches& launches, bool writes)
        : kernel_(kernel), launches_(launches), writes_(writes), room_{packets_, frames_, verdicts_} {}

    const Room& room() noexcept override { return room_; }
    bool run(std::size_t count, std::size_t frames_bytes) noexcept override {
      launches_.packets.push_back(count);
      failure_ = launches_.failure;
      if (!failure_.empty()) return false;
      std::fill_n(verdicts_.begin(), count, penstock_verdict{});
      // The device's own, so that a test sees what the launcher is to copy.
      std::vector<std::uint8_t> frames(frames_.begin(), frames_.begin() + static_cast<std::ptrdiff_t>(frames_bytes));
      penstock_batch batch{};
      batch.abi = PENSTOCK_KERNEL_ABI;
      batch.count = static_cast<std::uint32_t>(count);
      batch.frames = frames.data();
      batch.frames_bytes = frames_bytes;
      batch.packets = packets_.data();
      batch.verdicts = verdicts_.data();
      for (unsigned packet = 0; packet < count; ++packet) kernel_(batch, packet);
      if (writes_) std::ranges::copy(frames, frames_.begin());
      return true;
    }
    std::string_view failure() const noexcept override { return failure_; }

   private:
    const HostKernel kernel_;
    Launches& launches_;
    const bool writes_;
    std::vector<penstock_packet> packets_ = std::vector<penstock_packet>(kMostPackets);
    std::vector<std::uint8_t> frames_ = std::vector<std::uint8_t>(kFramesBytes);
    std::vector<penstock_verdict> verdicts_ = std::vector<penstock_verdict>(kMostPackets);
    const Room room_;
    std::string failure_;
  };

  const HostKernel kernel_;
  Launches& launches_;
};

}  // namespace penstock::kernel
