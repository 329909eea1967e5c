// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The engines that run BPF programs on a GPU, behind one interface. A matcher owns what its programs need on the device
// that was current when it was made, is immutable, and may be used by many streams at once. It must outlive the work
// that it has enqueued.

#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "base/error.h"
#include "gpu/stage.h"
#include "gpu/stream.h"
#include "nf/filter/bpf/program.h"
#include "nf/filter/code/generate.h"
#include "nf/filter/code/machine_code.h"
#include "nf/filter/code/packet_window.h"

namespace penstock::filter {

/// interpreter: runs the programs' instructions. generated: runs code that was generated and compiled for them.
enum class DeviceEngine : std::uint8_t { interpreter, generated };

/// "gpu" or "gpu-generated", as the command line calls them.
[[nodiscard]] std::string_view to_string(DeviceEngine engine) noexcept;

class DeviceMatcher {
 public:
  virtual ~DeviceMatcher() = default;

  /// Enqueues the programs for all packets that are alive, and writes their rows of `words`: bit i % 32 of word i / 32
  /// is set if program i matches. If batch.undecided is not null, it must have a byte for each packet; a packet with 1
  /// there needs bytes that are not there, and its row is not valid. Does not block. False if the driver refuses.
  [[nodiscard]] virtual bool match(const MatchBatch& batch, const gpu::Stream& stream) const noexcept = 0;
  /// The same, with a row of return values, one for each program. Only if GenerateOptions::returns was set.
  [[nodiscard]] virtual bool returns(const MatchBatch& batch, const gpu::Stream& stream) const noexcept = 0;

  [[nodiscard]] virtual DeviceEngine engine() const noexcept = 0;
  [[nodiscard]] std::size_t programs() const noexcept { return programs_; }
  [[nodiscard]] std::uint32_t words() const noexcept { return words_for(programs_); }
  /// Only so many of a packet's first bytes need to be on the device.
  [[nodiscard]] std::uint32_t reach() const noexcept { return reach_; }

 protected:
  DeviceMatcher(std::size_t programs, std::uint32_t reach) noexcept : programs_(programs), reach_(reach) {}

 private:
  std::size_t programs_;
  std::uint32_t reach_;
};

/// Throw CudaError. The generated engine fails if NVRTC is missing.
[[nodiscard]] std::unique_ptr<DeviceMatcher> make_interpreting_matcher(std::span<const Program> programs);
[[nodiscard]] Result<std::unique_ptr<DeviceMatcher>> make_generated_matcher(MachineCode& code);

/// Either of them. Fails if there are too many programs.
[[nodiscard]] Result<std::unique_ptr<DeviceMatcher>> make_device_matcher(DeviceEngine engine,
                                                                         std::span<const Program> programs,
                                                                         const GenerateOptions& options = {});

/// The packets of a lane's batch, of which only the first `available` bytes are on the device.
[[nodiscard]] PacketRecords records_of(const gpu::DevicePackets& packets,
                                       std::uint32_t available = kUnbounded) noexcept;

}  // namespace penstock::filter
