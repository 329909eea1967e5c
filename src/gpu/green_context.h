// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Parts of a device's multiprocessors, by green contexts of the CUDA driver: kernels in the streams of a green context
// run on its multiprocessors only, whatever launches them. A graph that is collected and launched in one of its streams
// (launch_graph.h) has them, too. Copies and memory are not divided. The driver's functions are looked up at run time,
// so nothing is linked with it.

#pragma once

#include <memory>

struct CUgreenCtx_st;  // the types that CUgreenCtx and cudaStream_t point to
struct CUstream_st;

namespace penstock::gpu {

struct GreenContextDeleter {
  void operator()(CUgreenCtx_st* context) const noexcept;
};

/// Must outlive its streams. Belongs to the device that was current when it was made.
class GreenContext {
 public:
  /// With `percent` of the current device's multiprocessors, rounded up as the driver needs it. Throws CudaError, with
  /// the driver's function and its reason.
  [[nodiscard]] static GreenContext of_percent(unsigned percent);

  [[nodiscard]] unsigned multiprocessors() const noexcept { return multiprocessors_; }
  /// A stream that the caller owns (StreamDeleter). It does not synchronise with the default stream. Throws CudaError.
  /// Thread-safe.
  [[nodiscard]] CUstream_st* make_stream() const;

 private:
  friend class MultiprocessorGroups;
  GreenContext(CUgreenCtx_st* owned, unsigned multiprocessors) noexcept
      : context_(owned), multiprocessors_(multiprocessors) {}

  std::unique_ptr<CUgreenCtx_st, GreenContextDeleter> context_;
  unsigned multiprocessors_ = 0;
};

/// While it lives, each gpu::Stream that the calling thread makes is one of this green context. Scopes of a thread may
/// be nested.
class GreenContextScope {
 public:
  /// Borrows the context; null: streams have all multiprocessors.
  explicit GreenContextScope(const GreenContext* context) noexcept;
  GreenContextScope(const GreenContextScope&) = delete;
  GreenContextScope& operator=(const GreenContextScope&) = delete;
  ~GreenContextScope();

  /// The calling thread's; null: none.
  [[nodiscard]] static const GreenContext* current() noexcept;

 private:
  const GreenContext* outer_;
};

/// The multiprocessors of a device in groups of the same size. Thread-safe.
class MultiprocessorGroups {
 public:
  /// Divides those of the current device into so many groups, as large as the driver allows. What is left over is in no
  /// group. Throws CudaError if the driver or the device cannot do that.
  explicit MultiprocessorGroups(unsigned groups);

  [[nodiscard]] unsigned multiprocessors_of_group() const noexcept;
  /// A green context with so many groups, which no other one gets until this one ends. Throws CudaError if there are
  /// not so many, or if the driver refuses.
  [[nodiscard]] std::shared_ptr<const GreenContext> take(unsigned groups) const;

 private:
  struct Division;
  std::shared_ptr<Division> division_;  // shared with the green contexts, which give back their groups
};

}  // namespace penstock::gpu
