// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "gpu/launch_graph.h"

#include <cuda_runtime_api.h>

namespace penstock::gpu {

void GraphDeleter::operator()(CUgraphExec_st* graph) const noexcept { static_cast<void>(cudaGraphExecDestroy(graph)); }

bool collect_launches(const Stream& stream) noexcept {
  if (cudaStreamBeginCapture(stream.get(), cudaStreamCaptureModeRelaxed) == cudaSuccess) return true;
  static_cast<void>(cudaGetLastError());
  return false;
}

void drop_collected(const Stream& stream) noexcept {
  cudaGraph_t collected = nullptr;
  static_cast<void>(cudaStreamEndCapture(stream.get(), &collected));
  if (collected != nullptr) static_cast<void>(cudaGraphDestroy(collected));
  static_cast<void>(cudaGetLastError());
}

bool LaunchGraph::launch(const Stream& stream) noexcept {
  cudaGraph_t collected = nullptr;
  if (cudaStreamEndCapture(stream.get(), &collected) != cudaSuccess) {
    static_cast<void>(cudaGetLastError());
    return false;
  }
  cudaGraphExecUpdateResultInfo difference{};
  if (graph_ != nullptr && cudaGraphExecUpdate(graph_.get(), collected, &difference) != cudaSuccess) {
    static_cast<void>(cudaGetLastError());
    graph_.reset();  // the kernels or their order have changed; another event would only change its node
  }
  bool good = true;
  if (graph_ == nullptr) {
    cudaGraphExec_t made = nullptr;
    good = cudaGraphInstantiate(&made, collected, 0) == cudaSuccess;
    graph_.reset(made);
  }
  good = good && cudaGraphLaunch(graph_.get(), stream.get()) == cudaSuccess;
  static_cast<void>(cudaGraphDestroy(collected));
  if (!good) static_cast<void>(cudaGetLastError());
  return good;
}

}  // namespace penstock::gpu
