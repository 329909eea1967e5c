// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "packet/packet_memory.h"

#include <fmt/format.h>

#include "packet/batch.h"

namespace penstock {

Result<PacketMemory::Region> PacketMemory::add(std::span<std::uint8_t> memory) {
  if (regions_ == kMostRegions) {
    return failure(Error{
        {}, "too many regions of packet memory", fmt::format("{}", regions_), fmt::format("{}", kMostRegions - 1)});
  }
  if (memory.empty() || memory.size() > kMostBytes) {
    return failure(Error{{},
                         "wrong size of a region of packet memory",
                         fmt::format("{} bytes", memory.size()),
                         fmt::format("1 to {} bytes", kMostBytes)});
  }
  // Kernels read whole words, also around a frame that is not aligned.
  if (reinterpret_cast<std::uintptr_t>(memory.data()) % kFrameAlignment != 0 || memory.size() % kFrameAlignment != 0) {
    return failure(Error{{},
                         "a region of packet memory is not aligned",
                         fmt::format("{} bytes from {}", memory.size(), fmt::ptr(memory.data())),
                         fmt::format("multiples of {}", kFrameAlignment)});
  }
  if (registers_) {
    auto registration = registers_(memory);
    if (!registration) return failure(std::move(registration.error()));
    registrations_[regions_] = std::move(*registration);
  }
  memories_[regions_] = memory;
  return static_cast<Region>(regions_++);
}

}  // namespace penstock
