// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Rings by which workers pass records to each other, one from each worker to each, and the events that wake those that
// sleep. Memory of a ring is only used once it has records.

#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <vector>

#include "port/spsc_byte_ring.h"
#include "port/stop_event.h"

namespace penstock::port {

class WorkerRings {
 public:
  WorkerRings(unsigned workers, std::size_t ring_bytes);

  [[nodiscard]] unsigned workers() const noexcept { return static_cast<unsigned>(parts_.size()); }
  /// Worker `from` writes, and worker `to` reads.
  [[nodiscard]] SpscByteRing& ring(unsigned from, unsigned to) noexcept { return *parts_[from]->to[to]; }

  // For the worker that writes.

  /// It has written to worker `to`, which `wake_others` will wake.
  void has_written(unsigned from, unsigned to) noexcept { parts_[from]->has_written[to] = true; }
  void wake_others(unsigned from) noexcept;

  // For the worker that reads.

  /// Called before it looks at its rings.
  void clear_signal(unsigned here) noexcept;
  /// Readable when there may be records for worker `here`, which calls this before it waits.
  [[nodiscard]] int wait_fd(unsigned here) noexcept;

 private:
  struct alignas(64) Part {
    std::vector<std::unique_ptr<SpscByteRing>> to;  // by reading worker
    std::vector<bool> has_written;                  // since the last `wake_others`, by reading worker
    StopEvent event;                                // for what others write to it
    std::atomic<bool> signalled{false};
  };

  std::vector<std::unique_ptr<Part>> parts_;  // by worker
};

}  // namespace penstock::port
