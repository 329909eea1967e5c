// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Runs a device's programs on packets in host memory. Of each packet, only the bytes that the programs can load are
// copied: to pinned memory, and from there to the device. Several batches are in flight, so that copies in both
// directions and kernels overlap. For commands and experiments; used by one thread. Throws CudaError.
//
//   while packets are left:  if (batches.full()) use(batches.take());  batches.submit(packets)
//   at the end:              while (!batches.empty()) use(batches.take())

#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "nf/filter/bpf/packet_bytes.h"
#include "nf/filter/code/device_matcher.h"

namespace penstock::filter {

/// Bitmaps, or return values.
enum class MatchOutput : std::uint8_t { bitmap, returns };

struct HostBatchLimits {
  std::size_t bytes = std::size_t{4} << 20;  // of packets in a batch; at least as many as the longest packet has
  std::size_t packets = 65536;               // in a batch
  std::size_t batches = 4;                   // in flight
};

class HostBatches {
 public:
  /// Of the oldest batch: a row for each packet, in the order of the packets.
  struct Results {
    std::size_t packets = 0;
    std::uint32_t row_words = 0;
    std::span<const std::uint32_t> words;
    [[nodiscard]] std::span<const std::uint32_t> row(std::size_t packet) const noexcept {
      return words.subspan(packet * row_words, row_words);
    }
  };

  /// The matcher must outlive this, and be for the current device.
  HostBatches(const DeviceMatcher& matcher, MatchOutput output, const HostBatchLimits& limits = {});
  ~HostBatches();
  HostBatches(const HostBatches&) = delete;
  HostBatches& operator=(const HostBatches&) = delete;

  /// As many batches are in flight as may be: `take` before the next `submit`.
  [[nodiscard]] bool full() const noexcept { return in_flight_ == slots_.size(); }
  [[nodiscard]] bool empty() const noexcept { return in_flight_ == 0; }

  /// Copies packets, from the first on, until a batch is full, and starts the batch. Returns the number of these
  /// packets; 0 if there is none, or if the first one does not fit into a batch. The packets are not needed any more.
  [[nodiscard]] std::size_t submit(std::span<const PacketBytes> packets);

  /// Blocks until the oldest batch is done. The results are valid until the next `submit`.
  [[nodiscard]] Results take();

  /// Bytes that crossed PCIe so far.
  [[nodiscard]] std::uint64_t bytes_up() const noexcept { return bytes_up_; }
  [[nodiscard]] std::uint64_t bytes_down() const noexcept { return bytes_down_; }

 private:
  struct Slot;

  const DeviceMatcher& matcher_;
  MatchOutput output_;
  HostBatchLimits limits_;
  std::uint32_t row_words_;
  std::vector<std::unique_ptr<Slot>> slots_;
  std::size_t next_ = 0;  // slot of the next batch; the oldest one is `in_flight_` before it
  std::size_t in_flight_ = 0;
  std::uint64_t bytes_up_ = 0;
  std::uint64_t bytes_down_ = 0;
};

}  // namespace penstock::filter
