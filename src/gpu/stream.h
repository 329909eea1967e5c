// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Owners of CUDA streams and events. No CUDA header is needed here, so a worker's loop is plain C++; kernels take
// `stream.get()`. Both belong to the device that was current when they were made and to one worker.

#pragma once

#include <memory>
#include <optional>

struct CUstream_st;  // what cudaStream_t and cudaEvent_t point to
struct CUevent_st;

namespace penstock::gpu {

/// How far the device has come. `kFailed` is final: the CUDA context is lost, and what was in flight with it.
enum class Progress { kRunning, kDone, kFailed };

struct StreamDeleter {
  void operator()(CUstream_st* stream) const noexcept;
};

struct EventDeleter {
  void operator()(CUevent_st* event) const noexcept;
};

class Event;

/// Work in order. It does not wait for the default stream, nor that for it.
class Stream {
 public:
  Stream();

  [[nodiscard]] CUstream_st* get() const noexcept { return stream_.get(); }

  /// Whether all that was enqueued is done; never waits.
  [[nodiscard]] Progress progress() const noexcept;

  /// Blocks until all that was enqueued is done. Set-up and tests only; throws CudaError.
  void wait() const;

  /// What is enqueued from here on starts after `event` has happened, as it was recorded last. Never blocks the caller.
  /// While launches are collected (launch_graph.h): as it was recorded last when the graph is launched.
  [[nodiscard]] bool start_after(const Event& event) const noexcept;

 private:
  std::unique_ptr<CUstream_st, StreamDeleter> stream_;
};

/// A point in a stream's work.
class Event {
 public:
  enum class Timing { kOff, kOn };  // an event that keeps the time costs more

  explicit Event(Timing timing = Timing::kOff);

  [[nodiscard]] CUevent_st* get() const noexcept { return event_.get(); }

  /// Marks the end of what is enqueued in `stream` by now; while launches are collected, each time that the graph is
  /// launched. False when the driver refuses it: the context is lost.
  [[nodiscard]] bool record(const Stream& stream) const noexcept;

  [[nodiscard]] Progress progress() const noexcept;

  /// Blocks until it has happened. Set-up and tests only; throws CudaError.
  void wait() const;

  /// From `start` to this, both with Timing::kOn and both done; throws CudaError.
  [[nodiscard]] double milliseconds_since(const Event& start) const;
  /// The same on the packet path: nothing where the context is lost.
  [[nodiscard]] std::optional<double> try_milliseconds_since(const Event& start) const noexcept;

 private:
  std::unique_ptr<CUevent_st, EventDeleter> event_;
};

}  // namespace penstock::gpu
