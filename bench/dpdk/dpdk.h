// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// DPDK, with which benchmarks compare our code.

#pragma once

#include <cstddef>

namespace penstock::bench {

/// Starts DPDK without huge pages and devices. Its memory is then eligible for transparent huge pages, like ours, so
/// that both sides have the same TLB misses. Once per process; throws std::runtime_error.
void start_dpdk(std::size_t megabytes);

}  // namespace penstock::bench
