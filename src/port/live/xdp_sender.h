// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The send side of one AF_XDP socket. Frames are copied into chunks, which come back by the completion ring once they
// have left. Frames that are longer than a chunk take several, if the socket can.

#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "port/live/xdp_rings.h"
#include "port/port.h"

namespace penstock::port {

class XdpSender {
 public:
  struct Shape {
    std::uint32_t chunk_bytes = 0;
    std::uint32_t first_chunk = 0;  // of the memory, to send from
    std::uint32_t chunks = 0;
    bool has_frags = false;     // frames may have several chunks
    bool is_zero_copy = false;  // the driver reads the ring, and not a system call
  };
  /// Borrows the socket, the rings' mappings and the memory.
  XdpSender(int socket, XdpFrameRing ring, XdpChunkRing completion, std::span<std::uint8_t> memory, const Shape& shape);

  [[nodiscard]] std::size_t longest_frame() const noexcept {
    return std::size_t{shape_.chunk_bytes} * (shape_.has_frags ? kMostChunks : 1);
  }
  /// False: there are no free chunks, until `offer` or the driver has sent some.
  [[nodiscard]] bool put(std::span<const std::uint8_t> frame) noexcept;
  /// Offers the frames to the kernel, which may leave some waiting. Returns those that it dropped.
  Lost offer() noexcept;
  /// Whether there are frames that the kernel has not taken.
  [[nodiscard]] std::uint32_t waiting() const noexcept { return ring_.in_use(); }

 private:
  /// MAX_SKB_FRAGS of the kernel is 17 by default.
  static constexpr std::size_t kMostChunks = 16;

  void reclaim() noexcept;
  void count_dropped(std::uint32_t consumed_before, Lost& lost) noexcept;

  int socket_;
  XdpFrameRing ring_;
  XdpChunkRing completion_;
  std::span<std::uint8_t> memory_;
  Shape shape_;
  std::vector<std::uint64_t> free_;  // chunks
  std::uint32_t hidden_ = 0;         // entries that the kernel has consumed without saying so yet
};

}  // namespace penstock::port
