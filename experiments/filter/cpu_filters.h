// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The same filters on the CPU, from the same 16-byte keys.

#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "classify/classifier.h"
#include "experiments/core_rates.h"
#include "experiments/filter/template_rules.h"

namespace penstock::experiments {

class CpuFilter {
 public:
  virtual ~CpuFilter() = default;
  /// Finds the number of the deciding rule for each key. `numbers` has room for one per key.
  virtual void filter(std::span<const TupleKey> keys, std::uint32_t* numbers) const noexcept = 0;
};

/// One key after the other, field by field, as the kernels do.
[[nodiscard]] std::unique_ptr<CpuFilter> make_scalar_filter(std::vector<WordRule<kKeyWords>> rules, Deciding deciding);
/// Each rule for 16 keys at once, in AVX2 instructions; without AVX2, the same as a scalar filter.
[[nodiscard]] std::unique_ptr<CpuFilter> make_vector_filter(std::vector<WordRule<kKeyWords>> rules, Deciding deciding);
/// An engine of classify/. Fails if the rules are too many for it.
[[nodiscard]] Result<std::unique_ptr<CpuFilter>> make_engine_filter(std::string_view engine,
                                                                    const std::vector<WordRule<kKeyWords>>& rules,
                                                                    Deciding deciding);

/// Keys per second on `cores` threads together, one rate for each repeat; each begins at a different key. `expected`
/// has the number of the right rule for every kCheckedStep-th key; fails if a result is wrong.
[[nodiscard]] Result<std::vector<double>> filter_on_cores(const CpuFilter& filter, std::span<const TupleKey> keys,
                                                          std::span<const std::uint32_t> expected, unsigned cores,
                                                          const Timing& timing);

}  // namespace penstock::experiments
