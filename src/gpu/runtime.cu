// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Streams and events, implemented with the CUDA runtime. no_cuda.cc replaces this file, memory.cu, devices.cu and
// pcie.cu in a build without CUDA.

#include <cuda_runtime_api.h>

#include <string>

#include "gpu/check.cuh"
#include "gpu/green_context.h"
#include "gpu/stream.h"

namespace penstock::gpu {
namespace {

Progress progress_of(cudaError_t status) noexcept {
  if (status == cudaSuccess) return Progress::kDone;
  return status == cudaErrorNotReady ? Progress::kRunning : Progress::kFailed;
}

/// Whether launches are being collected. An event of another stream is then an external node of the graph, and must be
/// flagged as such; otherwise the flag is not allowed.
bool collects(cudaStream_t stream) noexcept {
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  return cudaStreamIsCapturing(stream, &status) == cudaSuccess && status == cudaStreamCaptureStatusActive;
}

}  // namespace

void throw_cuda_error(cudaError_t status, std::source_location where) {
  // Clear the runtime's last error, so that the next kernel launch does not report it.
  static_cast<void>(cudaGetLastError());
  // The path relative to our source tree, without the build machine's folder.
  std::string file = where.file_name();
  if (const auto sources = file.rfind("/src/"); sources != std::string::npos) file.erase(0, sources + 1);
  throw CudaError(status, file + ":" + std::to_string(where.line()) + ": CUDA: " + cudaGetErrorString(status) + " (" +
                              cudaGetErrorName(status) + ")");
}

// At program exit, the driver may be unloaded before the last owner is destroyed. Then there is nothing left to free,
// and these calls fail, so their statuses are ignored on purpose.
void StreamDeleter::operator()(CUstream_st* stream) const noexcept { static_cast<void>(cudaStreamDestroy(stream)); }
void EventDeleter::operator()(CUevent_st* event) const noexcept { static_cast<void>(cudaEventDestroy(event)); }

Stream::Stream() {
  if (const GreenContext* const context = GreenContextScope::current(); context != nullptr) {
    stream_.reset(context->make_stream());
    return;
  }
  cudaStream_t stream = nullptr;
  check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  stream_.reset(stream);
}

Progress Stream::progress() const noexcept { return progress_of(cudaStreamQuery(stream_.get())); }

void Stream::wait() const { check(cudaStreamSynchronize(stream_.get())); }

bool Stream::start_after(const Event& event) const noexcept {
  const unsigned flags = collects(stream_.get()) ? cudaEventWaitExternal : cudaEventWaitDefault;
  return cudaStreamWaitEvent(stream_.get(), event.get(), flags) == cudaSuccess;
}

Event::Event(Timing timing) {
  cudaEvent_t event = nullptr;
  check(cudaEventCreateWithFlags(&event, timing == Timing::kOn ? cudaEventDefault : cudaEventDisableTiming));
  event_.reset(event);
}

bool Event::record(const Stream& stream) const noexcept {
  const unsigned flags = collects(stream.get()) ? cudaEventRecordExternal : cudaEventRecordDefault;
  return cudaEventRecordWithFlags(event_.get(), stream.get(), flags) == cudaSuccess;
}

Progress Event::progress() const noexcept { return progress_of(cudaEventQuery(event_.get())); }

void Event::wait() const { check(cudaEventSynchronize(event_.get())); }

double Event::milliseconds_since(const Event& start) const {
  float milliseconds = 0;
  check(cudaEventElapsedTime(&milliseconds, start.get(), event_.get()));
  return milliseconds;
}

std::optional<double> Event::try_milliseconds_since(const Event& start) const noexcept {
  float milliseconds = 0;
  if (cudaEventElapsedTime(&milliseconds, start.get(), event_.get()) == cudaSuccess) return milliseconds;
  static_cast<void>(cudaGetLastError());
  return std::nullopt;
}

}  // namespace penstock::gpu
