// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// A thread that reads captures for several workers, or for one that must not wait for a pipe, and hands each worker the
// packets of its flows through a ring. Nothing is lost: the thread waits while a ring is full, and fragments that wait
// for the first one of their datagram are handed over at the input's end at the latest. What it owns: the thread, the
// rings. What it borrows: the captures, which nobody else touches while it runs.

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

  /// For the worker's own thread; see `RxQueue::poll`.
  RxStatus poll(unsigned worker, Batch& batch, PortIndex in_port, std::uint64_t until_ns) noexcept;
  /// See `RxQueue::next_time_ns`. Workers that wait for each other's sources by it come on: of all frames that threads
  /// hold back for a full ring, the worker of the earliest waits for nobody. Fragments that wait for the first one of
  /// their datagram are no concern of it: no worker waits for them, and they come with that one, at its time.
  [[nodiscard]] std::uint64_t next_time_ns(unsigned worker) noexcept;

  /// Ends the thread, wherever it is in the captures. A read that waits for a pipe is ended by ReadControl::stop_fd.
  void stop() noexcept;
  /// The frame that fits no batch and so ended the run, if one did. Once the thread and the workers have stopped.
  [[nodiscard]] OversizedFrame oversized() const noexcept { return {oversized_bytes_.load(), oversized_number_}; }
  [[nodiscard]] std::optional<FragmentCounts> fragments() const noexcept { return chooser_.counts(); }

 private:
  void run() noexcept;
  bool hand_over(unsigned worker, const CapturedFrame& frame) noexcept;
  void note_oversized(std::size_t bytes, std::uint64_t number) noexcept;

  CaptureSequence* captures_;
  WorkerChooser chooser_;  // the thread's
  std::vector<std::unique_ptr<SpscByteRing>> rings_;
  std::atomic<bool> stop_{false};
  std::atomic<std::uint64_t> latest_ns_{0};  // of the frames that were read
  std::atomic<bool> done_{false};            // nothing comes behind what is in the rings
  std::atomic<std::size_t> oversized_bytes_{0};
  std::uint64_t oversized_number_ = 0;
  std::thread thread_;
};

}  // namespace penstock::port
