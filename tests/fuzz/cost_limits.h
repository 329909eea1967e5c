// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Cost limits for one input of a fuzzer. If an input costs more, the program aborts with a message that names the
// input. So a reader whose memory or time is not bounded fails like one that crashes.

#pragma once

#include <cstddef>
#include <cstdint>

namespace penstock::fuzz {

struct CostLimits {
  std::size_t bytes = std::size_t{256} << 20;  // allocated at once, in addition to the memory in use before the input
  unsigned seconds = 10;                       // of CPU time, over all threads; 0: no limit
};

/// Sets the limits from here to the next call. `input` is its name, which the caller keeps alive.
void begin_input(const char* input, const CostLimits& limits) noexcept;

/// Called by the allocation counter: by how much the memory in use has grown.
void count_allocation(std::int64_t bytes) noexcept;
/// Starts counting; called once.
void start_counting() noexcept;

}  // namespace penstock::fuzz
