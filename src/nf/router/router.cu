// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The GPU stage: one thread per packet, with the tables that were newest when the batch began.

#include <variant>

#include "gpu/check.cuh"
#include "gpu/memory.h"
#include "gpu/per_packet.cuh"
#include "gpu/stream.h"
#include "nf/router/device_tables.h"
#include "nf/router/entry_runs.h"
#include "nf/router/forward_core.h"

namespace penstock::router {

namespace {

class RouterGpuStage final : public gpu::GpuStage {
 public:
  RouterGpuStage(DeviceSide& side, CheckRules rules) : side_(side), tables_(side.snapshot()), rules_(rules) {}

  void begin_batch() noexcept override { tables_.refresh(); }

  bool enqueue(const gpu::DevicePackets& batch, const gpu::Stream& stream) noexcept override {
    if (side_.lost()) return false;
    const DeviceTables& tables = tables_.table();
    return std::visit(
        [&]<typename View>(const View& v4) {
          return gpu::enqueue_per_packet(ForwardCore<View, Fib6View>{v4, tables.v6(), tables.view(), rules_}, batch,
                                         stream);
        },
        tables.v4());
  }

 private:
  DeviceSide& side_;
  function::Snapshot<DeviceTables>::Reader tables_;
  CheckRules rules_;
};

constexpr unsigned kThreads = 256;
constexpr unsigned kEntries = 4;  // of a thread

/// The last of `runs` ends is `entries`.
__global__ void expand(const std::uint32_t* values, const std::uint32_t* ends, std::size_t runs, std::size_t entries,
                       std::uint32_t* to) {
  const std::size_t first = (std::size_t{blockIdx.x} * kThreads + threadIdx.x) * kEntries;
  if (first >= entries) return;
  std::size_t run = 0;  // the first one that ends after `first`
  for (std::size_t last = runs - 1; run < last;) {
    const std::size_t middle = run + (last - run) / 2;
    if (ends[middle] > first) {
      last = middle;
    } else {
      run = middle + 1;
    }
  }
  for (std::size_t at = first; at < entries && at < first + kEntries; ++at) {
    if (ends[run] <= at) ++run;  // each has an entry
    to[at] = values[run];
  }
}

}  // namespace

void expand_on_device(const RunSpans& runs, std::uint32_t* to) {
  constexpr std::size_t kOfBlock = std::size_t{kThreads} * kEntries;
  const gpu::DeviceBuffer<std::uint32_t> values(runs.values);
  const gpu::DeviceBuffer<std::uint32_t> ends(runs.ends);
  const gpu::Stream stream;
  const auto blocks = static_cast<unsigned>((runs.size() + kOfBlock - 1) / kOfBlock);
  expand<<<blocks, kThreads, 0, stream.get()>>>(values.data(), ends.data(), ends.size(), runs.size(), to);
  gpu::check_launch();
  stream.wait();  // others may use it now, and the runs are freed
}

std::unique_ptr<gpu::GpuStage> make_router_gpu_stage(DeviceSide& side, CheckRules rules) {
  return std::make_unique<RouterGpuStage>(side, rules);
}

}  // namespace penstock::router
