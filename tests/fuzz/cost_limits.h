// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// What one input of a fuzzer may cost. An input that costs more stops the program, by abort(), with a message that
// names it: a reader whose memory or time has no bound fails like one that crashes.

#pragma once

#include <cstddef>
#include <cstdint>

namespace penstock::fuzz {

struct CostLimits {
  std::size_t bytes = std::size_t{256} << 20;  // allocated at once, beyond what was before the input
  unsigned seconds = 10;                       // of CPU time, of all threads; 0: any
};

/// The limits hold from here on, until the next call. `input` is its name, kept alive by the caller.
void begin_input(const char* input, const CostLimits& limits) noexcept;

/// For what counts allocations: by how much the memory in use has grown.
void count_allocation(std::int64_t bytes) noexcept;
/// Begins to count; called once.
void start_counting() noexcept;

}  // namespace penstock::fuzz
