// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Many small launches, one behind the other, as one. A launch costs the host some microseconds each, a CUDA graph of
// them costs them once; for small batches that is most of their time (docs/performance.md). The graph is collected anew
// each time, since addresses and sizes differ from batch to batch, and its executable is brought up to date, which is
// cheap as long as the same kernels and copies come in the same order.

#pragma once

#include <memory>

#include "gpu/stream.h"

struct CUgraphExec_st;

namespace penstock::gpu {

struct GraphDeleter {
  void operator()(CUgraphExec_st* graph) const noexcept;
};

/// From here on the stream does nothing: what is enqueued is collected, until `LaunchGraph::launch` or
/// `drop_collected`. Nothing that waits may be called meanwhile. False when the driver refuses.
[[nodiscard]] bool collect_launches(const Stream& stream) noexcept;
void drop_collected(const Stream& stream) noexcept;

class LaunchGraph {
 public:
  /// Launches what has been collected. False when the driver refuses: then nothing of it was launched, or the context
  /// is lost.
  [[nodiscard]] bool launch(const Stream& stream) noexcept;

 private:
  std::unique_ptr<CUgraphExec_st, GraphDeleter> graph_;
};

}  // namespace penstock::gpu
