// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Ways to copy a buffer of packets, some of which were dropped, back from the device (Gaviss §4.2 and §5.6):
//
//   all         the buffer in one copy, dropped packets too: what Gaviss does
//   selective   a copy for each run of packets that were not dropped
//   pack        kernels compact them on the device, then one copy: what a lane does (ring/lane_kernels.cuh)
//   pack_zero   the same kernels write into the host's memory: the lane's zero copy

#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace penstock::experiments {

struct ReturnCase {
  std::string scheme;
  std::string spread;  // of the dropped packets: uniform, random or cluster
  std::size_t buffer_bytes = 0;
  std::size_t packet_bytes = 0;  // a multiple of 16
  unsigned dropped_percent = 0;  // below 100
};

/// Which of `count` packets are dropped.
[[nodiscard]] std::vector<bool> dropped_packets(std::size_t count, unsigned percent, std::string_view spread);

struct ReturnTime {
  double seconds = 0;             // for one buffer, from the first call to the last byte
  std::uint32_t first_wrong = 0;  // number, from 1, of the first packet that arrived with wrong bytes; 0: none
};

/// The mean of `times` transfers, one after the other, on `device`. Throws gpu::CudaError.
[[nodiscard]] ReturnTime time_return(int device, const ReturnCase& the_case, unsigned times);

}  // namespace penstock::experiments
