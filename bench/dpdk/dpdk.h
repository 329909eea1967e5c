// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// DPDK as the benchmarks' peer.

#pragma once

#include <cstddef>

namespace penstock::bench {

/// Starts DPDK without huge pages and devices; its memory is then offered to transparent huge pages, as ours is, so
/// that both sides miss the TLB alike. Once per process; throws std::runtime_error.
void start_dpdk(std::size_t megabytes);

}  // namespace penstock::bench
