// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// A thread that reads captures and passes each worker the packets of its flows through a ring. It serves several
// workers, or one worker that must not block on a pipe. Nothing is lost: the thread blocks while a ring is full, and
// fragments that still wait for the first one of their datagram are delivered at the end of the input. Owns the thread
// and the rings. Borrows the captures, which nothing else may use while the thread runs.

#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/error.h"
#include "packet/batch.h"
#include "port/capture_reader.h"
#include "port/port.h"
#include "port/spsc_byte_ring.h"
#include "port/worker_chooser.h"

namespace penstock::port {

class FlowFeeder {
 public:
  FlowFeeder(CaptureSequence& captures, unsigned workers);
  FlowFeeder(const FlowFeeder&) = delete;
  FlowFeeder& operator=(const FlowFeeder&) = delete;
  ~FlowFeeder() { stop(); }

  /// Called by the worker's own thread; see `RxQueue::poll`.
  RxStatus poll(unsigned worker, Batch& batch, PortIndex in_port, std::uint64_t until_ns) noexcept;
  /// See `RxQueue::next_time_ns`. Workers that wait for each other's sources cannot deadlock: of all frames that are
  /// held back because a ring is full, take the earliest; its worker waits for no other source. Waiting fragments do
  /// not count here: no worker waits for them, and they are delivered with the first fragment, at its time.
  [[nodiscard]] std::uint64_t next_time_ns(unsigned worker) noexcept;

  /// Stops the thread, wherever it is in the captures. ReadControl::stop_fd ends a read that blocks on a pipe.
  void stop() noexcept;
  /// The frame that was too long for a batch and ended the run, if any. Call it once the thread and the workers have
  /// stopped.
  [[nodiscard]] OversizedFrame oversized() const noexcept { return {oversized_bytes_.load(), oversized_number_}; }
  [[nodiscard]] std::optional<FragmentCounts> fragments() const noexcept { return chooser_.counts(); }

 private:
  void run() noexcept;
  bool hand_over(unsigned worker, const CapturedFrame& frame) noexcept;
  void note_oversized(std::size_t bytes, std::uint64_t number) noexcept;

  CaptureSequence* captures_;
  WorkerChooser chooser_;  // used by the thread only
  std::vector<std::unique_ptr<SpscByteRing>> rings_;
  std::atomic<bool> stop_{false};
  std::atomic<std::uint64_t> latest_ns_{0};  // time of the last frame read
  std::atomic<bool> done_{false};            // nothing follows what is in the rings
  std::atomic<std::size_t> oversized_bytes_{0};
  std::uint64_t oversized_number_ = 0;
  std::thread thread_;
};

}  // namespace penstock::port
