// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Owners of CUDA streams and events. Needs no CUDA header, so a worker's loop is plain C++; kernels take
// `stream.get()`. Both belong to one worker, and to the device that was current when they were made.

#pragma once

#include <memory>
#include <optional>

struct CUstream_st;  // the types that cudaStream_t and cudaEvent_t point to
struct CUevent_st;

namespace penstock::gpu {

/// The progress of the device. `kFailed` is final: the CUDA context is lost, with all work in flight.
enum class Progress { kRunning, kDone, kFailed };

struct StreamDeleter {
  void operator()(CUstream_st* stream) const noexcept;
};

struct EventDeleter {
  void operator()(CUevent_st* event) const noexcept;
};

class Event;

/// A queue of work that runs in order. Does not synchronise with the default stream.
class Stream {
 public:
  Stream();

  [[nodiscard]] CUstream_st* get() const noexcept { return stream_.get(); }

  /// Whether all enqueued work is done; never blocks.
  [[nodiscard]] Progress progress() const noexcept;

  /// Blocks until all enqueued work is done. Only for set-up and tests; throws CudaError.
  void wait() const;

  /// Work enqueued after this starts after the last recorded `event`. Never blocks the caller. If launches are
  /// collected (launch_graph.h), "last recorded" refers to the time when the graph is launched.
  [[nodiscard]] bool start_after(const Event& event) const noexcept;

 private:
  std::unique_ptr<CUstream_st, StreamDeleter> stream_;
};

/// A point in a stream's work.
class Event {
 public:
  enum class Timing { kOff, kOn };  // events with timing cost more

  explicit Event(Timing timing = Timing::kOff);

  [[nodiscard]] CUevent_st* get() const noexcept { return event_.get(); }

  /// Marks the end of the work that is in `stream` now. If launches are collected, it is recorded each time the graph
  /// is launched. False if the driver refuses, which means that the context is lost.
  [[nodiscard]] bool record(const Stream& stream) const noexcept;

  [[nodiscard]] Progress progress() const noexcept;

  /// Blocks until the event has happened. Only for set-up and tests; throws CudaError.
  void wait() const;

  /// Time from `start` to this event. Both must have Timing::kOn and have happened. Throws CudaError.
  [[nodiscard]] double milliseconds_since(const Event& start) const;
  /// Like `milliseconds_since`, for the packet path; empty if the context is lost.
  [[nodiscard]] std::optional<double> try_milliseconds_since(const Event& start) const noexcept;

 private:
  std::unique_ptr<CUevent_st, EventDeleter> event_;
};

}  // namespace penstock::gpu
