// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "experiments/filter/key_kernels.cuh"
#include "gpu/check.cuh"

namespace penstock::experiments {
namespace {

__constant__ WordRule<2> g_rules_of_two[kMostConstantRules];
__constant__ WordRule<4> g_rules_of_four[kMostConstantRules];

template <unsigned kFields>
__device__ __forceinline__ const WordRule<kFields>& rule_at(std::uint32_t i) {
  if constexpr (kFields == 2) {
    return g_rules_of_two[i];
  } else {
    return g_rules_of_four[i];
  }
}

template <bool kTexture, unsigned kFields, Deciding kDeciding, unsigned kUnroll>
__global__ void __launch_bounds__(kMostThreads)
    filter_keys(const KeysAt keys, const std::uint32_t count, const ResultsAt results, const std::uint32_t rules) {
  const std::uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= count) return;
  const KeyWords key = key_at<kTexture>(keys, i);
  std::uint32_t found = 0;
#pragma unroll kUnroll
  for (std::uint32_t r = 0; r < rules; ++r) {
    if (!matches(rule_at<kFields>(r), key)) continue;
    found = r + 1;
    if constexpr (kDeciding == Deciding::first) break;
  }
  __syncwarp();
  put_result(results, i, found);
}

template <unsigned kFields>
class ConstantFilter final : public KeyFilter {
 public:
  using Kernel = void (*)(KeysAt, std::uint32_t, ResultsAt, std::uint32_t);

  ConstantFilter(std::uint32_t rules, Deciding deciding, unsigned unroll)
      : rules_(rules), direct_(kernel<false>(deciding, unroll)), texture_(kernel<true>(deciding, unroll)) {}

  bool enqueue(const KeysAt& keys, std::uint32_t count, const ResultsAt& results, unsigned block,
               CUstream_st* stream) const noexcept override {
    return launch_keys(keys.texture != 0 ? texture_ : direct_, count, block, stream, keys, count, results, rules_);
  }

 private:
  template <bool kTexture>
  static Kernel kernel(Deciding deciding, unsigned unroll) {
    return deciding == Deciding::first ? kernel<kTexture, Deciding::first>(unroll)
                                       : kernel<kTexture, Deciding::last>(unroll);
  }
  template <bool kTexture, Deciding kDeciding>
  static Kernel kernel(unsigned unroll) {
    switch (unroll) {
      case 1: return filter_keys<kTexture, kFields, kDeciding, 1>;
      case 4: return filter_keys<kTexture, kFields, kDeciding, 4>;
      default: return filter_keys<kTexture, kFields, kDeciding, 16>;
    }
  }

  std::uint32_t rules_;
  Kernel direct_, texture_;
};

}  // namespace

template <unsigned kFields>
std::unique_ptr<KeyFilter> make_constant_filter(std::span<const WordRule<kFields>> rules, Deciding deciding,
                                                unsigned unroll) {
  if constexpr (kFields == 2) {
    gpu::check(cudaMemcpyToSymbol(g_rules_of_two, rules.data(), rules.size_bytes()));
  } else {
    gpu::check(cudaMemcpyToSymbol(g_rules_of_four, rules.data(), rules.size_bytes()));
  }
  return std::make_unique<ConstantFilter<kFields>>(static_cast<std::uint32_t>(rules.size()), deciding, unroll);
}

template std::unique_ptr<KeyFilter> make_constant_filter(std::span<const WordRule<2>>, Deciding, unsigned);
template std::unique_ptr<KeyFilter> make_constant_filter(std::span<const WordRule<4>>, Deciding, unsigned);

}  // namespace penstock::experiments
