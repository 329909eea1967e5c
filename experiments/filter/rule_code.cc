// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "experiments/filter/rule_code.h"

#include <fmt/format.h>

#include <iterator>

namespace penstock::experiments {
namespace {

// The same as in key_kernels.cuh.
constexpr const char* kHead = R"(
typedef unsigned int u32;
struct Keys { const uint4* memory; unsigned long long texture; };
struct Results { void* memory; u32 bits; };

static __device__ __forceinline__ void put_result(const Results& results, u32 i, u32 number) {
  switch (results.bits) {
    case 1: {
      const u32 verdicts = __ballot_sync(0xffffffffu, number != 0);
      if (i % 32 == 0) static_cast<u32*>(results.memory)[i / 32] = verdicts;
      break;
    }
    case 8: static_cast<unsigned char*>(results.memory)[i] = number != 0 ? 1 : 0; break;
    case 16: static_cast<unsigned short*>(results.memory)[i] = static_cast<unsigned short>(number); break;
    default: static_cast<u32*>(results.memory)[i] = number; break;
  }
}

static __device__ __forceinline__ u32 deciding_rule(const u32 w0, const u32 w1, const u32 w2, const u32 w3) {
  u32 found = 0;
)";

constexpr const char* kTail = R"(  return found;
}

// NVRTC does not know tex1Dfetch.
static __device__ __forceinline__ uint4 fetch(const unsigned long long texture, const u32 i) {
  uint4 words;
  asm("tex.1d.v4.u32.s32 {%0, %1, %2, %3}, [%4, {%5}];"
      : "=r"(words.x), "=r"(words.y), "=r"(words.z), "=r"(words.w)
      : "l"(texture), "r"(i));
  return words;
}

extern "C" __global__ void __launch_bounds__(1024) filter_keys(const Keys keys, const u32 count, const Results results) {
  const u32 i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= count) return;
  const uint4 key = keys.texture != 0 ? fetch(keys.texture, i) : __ldg(keys.memory + i);
  const u32 found = deciding_rule(key.x, key.y, key.z, key.w);
  __syncwarp();
  put_result(results, i, found);
}
)";

}  // namespace

std::string rule_code(std::span<const WordRule<kKeyWords>> rules, Deciding deciding) {
  std::string code = kHead;
  for (std::size_t r = 0; r < rules.size(); ++r) {
    code += "  if (";
    const char* separator = "";
    for (unsigned i = 0; i < kKeyWords; ++i) {
      const auto& field = rules[r].fields[i];
      if (field.mask == 0) continue;
      fmt::format_to(std::back_inserter(code), "{}(w{} & {:#x}u) == {:#x}u", separator, i, field.mask, field.value);
      separator = " && ";
    }
    if (*separator == '\0') code += "true";
    fmt::format_to(std::back_inserter(code), ") {} {}u;\n", deciding == Deciding::first ? "return" : "found =", r + 1);
  }
  return code + kTail;
}

}  // namespace penstock::experiments
