// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The interpreter core in a kernel. A thread runs 32 programs on one packet, so that it writes one word, and that a few
// packets with many programs fill the device. The threads of a warp have different packets and the same programs.

#include <cuda_runtime.h>

#include <vector>

#include "gpu/check.cuh"
#include "gpu/memory.h"
#include "nf/filter/bpf/interpreter_core.h"
#include "nf/filter/code/device_matcher.h"

namespace penstock::filter {
namespace {

constexpr unsigned kBlock = 128;

/// An instruction as it is loaded: in one piece, through the read-only cache.
struct alignas(8) PackedInstruction {
  std::uint32_t low;
  std::uint32_t k;
};

class InstructionAt {
 public:
  __device__ explicit InstructionAt(const PackedInstruction* at) : at_(at) {}
  __device__ Instruction operator*() const noexcept {
    const uint2 packed = __ldg(reinterpret_cast<const uint2*>(at_));
    return {static_cast<std::uint16_t>(packed.x), static_cast<std::uint8_t>(packed.x >> 16),
            static_cast<std::uint8_t>(packed.x >> 24), packed.y};
  }
  __device__ InstructionAt& operator++() noexcept {
    ++at_;
    return *this;
  }
  __device__ InstructionAt& operator+=(std::uint32_t instructions) noexcept {
    at_ += instructions;
    return *this;
  }

 private:
  const PackedInstruction* at_;
};

struct ProgramsView {
  const PackedInstruction* instructions;
  const std::uint32_t* starts;
  std::uint32_t count;
};

/// One word of the bitmap, or 32 return values, for each thread. The second dimension of the grid is the word.
template <bool kReturns>
__global__ void __launch_bounds__(kBlock) interpret_packets(const ProgramsView programs, const MatchBatch batch) {
  const std::uint32_t i = blockIdx.x * kBlock + threadIdx.x;
  if (i >= batch.packets.count || !is_alive(batch.packets, i)) return;
  const PacketWindow packet = window_of(batch.packets, i);
  const std::uint8_t* const data = data_of(batch.packets, i);
  std::uint32_t* const row = batch.words + std::uint64_t{i} * batch.row_words;
  const std::uint32_t first = 32 * blockIdx.y;
  const std::uint32_t in_word = min(32U, programs.count - first);
  std::uint32_t bits = 0;
  bool any_undecided = false;
  for (std::uint32_t bit = 0; bit < in_word; ++bit) {
    bool undecided = false;
    const InstructionAt start(programs.instructions + programs.starts[first + bit]);
    const std::uint32_t result =
        interpret_with(start, data, packet.available, packet.wire_length, OutsidePart{packet.length, &undecided});
    any_undecided |= undecided;
    if constexpr (kReturns) {
      row[first + bit] = result;
    } else {
      bits |= static_cast<std::uint32_t>(result != 0) << bit;
    }
  }
  if constexpr (!kReturns) row[blockIdx.y] = bits;
  if (any_undecided && batch.undecided != nullptr) batch.undecided[i] = 1;
}

class InterpretingMatcher final : public DeviceMatcher {
 public:
  explicit InterpretingMatcher(std::span<const Program> programs)
      : DeviceMatcher(programs.size(), filter::reach(programs)) {
    std::vector<PackedInstruction> instructions;
    std::vector<std::uint32_t> starts;
    for (const Program& program : programs) {
      starts.push_back(static_cast<std::uint32_t>(instructions.size()));
      for (const Instruction& instruction : program.instructions()) {
        instructions.push_back({static_cast<std::uint32_t>(instruction.code) |
                                    static_cast<std::uint32_t>(instruction.jump_true) << 16 |
                                    static_cast<std::uint32_t>(instruction.jump_false) << 24,
                                instruction.k});
      }
    }
    instructions_ = gpu::DeviceBuffer<PackedInstruction>(std::span<const PackedInstruction>(instructions));
    starts_ = gpu::DeviceBuffer<std::uint32_t>(std::span<const std::uint32_t>(starts));
  }

  bool match(const MatchBatch& batch, const gpu::Stream& stream) const noexcept override {
    return launch(interpret_packets<false>, batch, stream);
  }
  bool returns(const MatchBatch& batch, const gpu::Stream& stream) const noexcept override {
    return launch(interpret_packets<true>, batch, stream);
  }
  DeviceEngine engine() const noexcept override { return DeviceEngine::interpreter; }

 private:
  bool launch(void (*kernel)(ProgramsView, MatchBatch), const MatchBatch& batch,
              const gpu::Stream& stream) const noexcept {
    const std::uint32_t count = batch.packets.count;
    if (count == 0 || programs() == 0) return true;
    if (batch.undecided != nullptr && !gpu::zero_async(batch.undecided, count, stream)) return false;
    cudaLaunchConfig_t launch{};
    launch.gridDim = dim3((count + kBlock - 1) / kBlock, words());
    launch.blockDim = kBlock;
    launch.stream = stream.get();
    const ProgramsView view{instructions_.data(), starts_.data(), static_cast<std::uint32_t>(programs())};
    return cudaLaunchKernelEx(&launch, kernel, view, batch) == cudaSuccess;
  }

  gpu::DeviceBuffer<PackedInstruction> instructions_;
  gpu::DeviceBuffer<std::uint32_t> starts_;
};

}  // namespace

std::unique_ptr<DeviceMatcher> make_interpreting_matcher(std::span<const Program> programs) {
  return std::make_unique<InterpretingMatcher>(programs);
}

}  // namespace penstock::filter
