// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// A GPU stage with one thread per packet, for functions that process packets independently. The core is `Verdict
// operator()(PacketView) const noexcept`, compiled for host and device. A core that needs what a state stage provides
// names its type `State`, and takes a `const State&` after the packet. A core with findings for the finish stage names
// their type `Finding`, and takes a `Finding&` last.

#pragma once

#include <cuda_runtime.h>

#include "gpu/stage.h"

namespace penstock::gpu {

inline constexpr unsigned kThreadsPerBlock = 256;

[[nodiscard]] constexpr unsigned blocks_for(std::size_t threads) noexcept {
  return static_cast<unsigned>((threads + kThreadsPerBlock - 1) / kThreadsPerBlock);
}

template <typename Core>
__global__ void __launch_bounds__(kThreadsPerBlock) run_per_packet(const Core core, const DevicePackets batch) {
  const std::uint32_t i = blockIdx.x * kThreadsPerBlock + threadIdx.x;
  if (i >= batch.count) return;
  PacketDescriptor& packet = batch.packets[i];
  if (!packet.verdict.alive()) return;
  const PacketView view{batch.frames + packet.offset, &packet};
  Verdict verdict;
  if constexpr (requires { typename Core::State; }) {
    verdict = core(view, reinterpret_cast<const typename Core::State*>(batch.states)[i],
                   reinterpret_cast<typename Core::Finding*>(batch.findings)[i]);
  } else if constexpr (requires { typename Core::Finding; }) {
    verdict = core(view, reinterpret_cast<typename Core::Finding*>(batch.findings)[i]);
  } else {
    verdict = core(view);
  }
  verdict.nf = batch.function;
  packet.verdict = verdict;
}

/// Launches this many threads, in blocks of kThreadsPerBlock. False if the driver refuses.
template <typename... Parameters, typename... Arguments>
[[nodiscard]] bool launch_threads(void (*kernel)(Parameters...), std::size_t threads, const Stream& stream,
                                  const Arguments&... arguments) noexcept {
  cudaLaunchConfig_t launch{};
  launch.gridDim = blocks_for(threads);
  launch.blockDim = kThreadsPerBlock;
  launch.stream = stream.get();
  return cudaLaunchKernelEx(&launch, kernel, Parameters(arguments)...) == cudaSuccess;
}

/// False if the driver refuses the launch.
template <typename Core>
[[nodiscard]] bool enqueue_per_packet(const Core& core, const DevicePackets& batch, const Stream& stream) noexcept {
  if (batch.count == 0) return true;
  return launch_threads(run_per_packet<Core>, batch.count, stream, core, batch);
}

/// For a core whose tables never change.
template <typename Core>
class PerPacketStage final : public GpuStage {
 public:
  explicit PerPacketStage(const Core& core) : core_(core) {}
  bool enqueue(const DevicePackets& batch, const Stream& stream) noexcept override {
    return enqueue_per_packet(core_, batch, stream);
  }

 private:
  Core core_;
};

}  // namespace penstock::gpu
