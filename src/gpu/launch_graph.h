// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Runs many small launches as one. Each launch costs the host some microseconds, a CUDA graph of them costs that once,
// and for small batches this is most of the time (docs/performance.md). The graph is collected for each batch, since
// addresses and sizes differ. Its executable is only updated, which is cheap as long as the same kernels and copies
// come in the same order.

#pragma once

#include <memory>

#include "gpu/stream.h"

struct CUgraphExec_st;

namespace penstock::gpu {

struct GraphDeleter {
  void operator()(CUgraphExec_st* graph) const noexcept;
};

/// From here on, work enqueued in the stream is not run but collected, until `LaunchGraph::launch` or `drop_collected`.
/// No blocking function may be called in between. False if the driver refuses.
[[nodiscard]] bool collect_launches(const Stream& stream) noexcept;
void drop_collected(const Stream& stream) noexcept;

class LaunchGraph {
 public:
  /// Launches the collected work. False if the driver refuses: then none of it was launched, or the context is lost.
  [[nodiscard]] bool launch(const Stream& stream) noexcept;

 private:
  std::unique_ptr<CUgraphExec_st, GraphDeleter> graph_;
};

}  // namespace penstock::gpu
