// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Where the frames of a chain's packets may be: in the memory of their batch, or in regions that ports lend. A region
// is known by its number, and a frame by the region and its offset there. So a device, or another process that maps the
// same memory at another address, finds the frame too.

#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>

#include "base/error.h"

namespace penstock {

class PacketMemory {
 public:
  using Region = std::uint8_t;
  /// The memory of the packet's batch (packet/batch.h).
  static constexpr Region kBatch = 0;
  static constexpr std::size_t kMostRegions = 32;  // with kBatch
  /// Offsets have 32 bits. Larger memory takes several regions.
  static constexpr std::size_t kMostBytes = std::size_t{1} << 32;

  /// Lets the chain's devices use the memory. They stop when the result is destroyed.
  using Register = std::function<Result<std::shared_ptr<void>>(std::span<std::uint8_t> memory)>;

  /// `registers`: empty if no device uses the memory. `shared`: another process uses it, so regions have to be memory
  /// that it can map (base/shared_memory.h).
  explicit PacketMemory(Register registers = {}, bool shared = false)
      : registers_(std::move(registers)), shared_(shared) {}
  [[nodiscard]] bool is_shared() const noexcept { return shared_; }

  /// Adds a region, for the packets of all workers. The memory stays the caller's, and must stay in place until
  /// `release`. An error says why the chain cannot use it; frames in it are then to be copied. Not thread-safe: call it
  /// before the workers start.
  [[nodiscard]] Result<Region> add(std::span<std::uint8_t> memory);
  /// Devices stop using the regions. No packet may be there any more.
  void release() noexcept { registrations_ = {}; }

  [[nodiscard]] std::uint8_t* base(Region region) const noexcept { return memories_[region].data(); }
  [[nodiscard]] std::span<std::uint8_t> memory(Region region) const noexcept { return memories_[region]; }
  /// All regions but kBatch.
  [[nodiscard]] std::span<const std::span<std::uint8_t>> lent() const noexcept {
    return std::span(memories_).subspan(1, regions_ - 1);
  }
  /// The number of regions, with kBatch.
  [[nodiscard]] std::size_t regions() const noexcept { return regions_; }

 private:
  Register registers_;
  bool shared_ = false;
  std::size_t regions_ = 1;
  std::array<std::span<std::uint8_t>, kMostRegions> memories_{};  // kBatch's is empty: it differs for each batch
  std::array<std::shared_ptr<void>, kMostRegions> registrations_{};
};

}  // namespace penstock
