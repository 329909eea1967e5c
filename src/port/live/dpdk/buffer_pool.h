// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Pools of DPDK's buffers for frames.

#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <tl/expected.hpp>

struct rte_mempool;

namespace penstock::port::dpdk {

struct BufferPoolEnd {
  void operator()(rte_mempool* pool) const noexcept;
};
using BufferPool = std::unique_ptr<rte_mempool, BufferPoolEnd>;

/// Buffers that each thread keeps of a pool; and as many more may be on their way there.
inline constexpr unsigned kThreadCache = 256;

/// `frame_bytes`: of a buffer, after DPDK's headroom. The error is DPDK's.
[[nodiscard]] tl::expected<BufferPool, std::string> make_buffer_pool(std::uint32_t buffers, std::uint32_t frame_bytes,
                                                                     int numa_node);

/// The memory of the pool, if it is in one piece: the whole pages, since a device may be given each page only once.
[[nodiscard]] std::span<std::uint8_t> memory_of(rte_mempool& pool);

}  // namespace penstock::port::dpdk
