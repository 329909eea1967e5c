// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Filters on a device: a thread finds the rule for one key. Needs no CUDA header. Keys are in memory that the device
// can read (global: its own; or the host's: zero copy), read directly or through a texture.

#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "base/error.h"
#include "experiments/filter/word_rules.h"

struct CUstream_st;  // the type that cudaStream_t points to

namespace penstock::experiments {

struct KeysAt {
  const TupleKey* memory = nullptr;
  unsigned long long texture = 0;  // a cudaTextureObject_t of the memory from `memory` on, of uint4; 0: none
};

struct ResultsAt {
  void* memory = nullptr;
  unsigned bits = 16;  // result_form.h
};

/// Threads in a block, and keys in a launch, are multiples of this.
inline constexpr unsigned kWarp = 32;

class KeyFilter {
 public:
  virtual ~KeyFilter() = default;
  /// Filters `count` keys. False if the driver refuses the launch.
  [[nodiscard]] virtual bool enqueue(const KeysAt& keys, std::uint32_t count, const ResultsAt& results, unsigned block,
                                     CUstream_st* stream) const noexcept = 0;
};

/// The most rules of a constant filter: 32 KiB with four fields. There is one copy of them per device, so a new filter
/// replaces the rules of earlier ones.
inline constexpr std::size_t kMostConstantRules = 1024;

/// The loop over rules in constant memory, unrolled 1, 4 or 16 times. kFields: 2 or 4. Throw gpu::CudaError.
template <unsigned kFields>
[[nodiscard]] std::unique_ptr<KeyFilter> make_constant_filter(std::span<const WordRule<kFields>> rules,
                                                              Deciding deciding, unsigned unroll);

}  // namespace penstock::experiments
