// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "port/live/dpdk/buffer_pool.h"

#include <rte_errno.h>
#include <rte_mbuf.h>
#include <rte_mempool.h>

#include <algorithm>
#include <atomic>
#include <vector>

#include "port/live/dpdk/log.h"

namespace penstock::port::dpdk {

void BufferPoolEnd::operator()(rte_mempool* pool) const noexcept { rte_mempool_free(pool); }

tl::expected<BufferPool, std::string> make_buffer_pool(std::uint32_t buffers, std::uint32_t frame_bytes,
                                                       int numa_node) {
  static std::atomic<unsigned> next{0};
  constexpr std::uint32_t kMostBytes = 0xffff;
  const std::uint32_t bytes = std::min(RTE_PKTMBUF_HEADROOM + frame_bytes, kMostBytes);
  const Log log;
  const std::string name = "penstock_" + std::to_string(next++);
  rte_mempool* const pool =
      rte_pktmbuf_pool_create(name.c_str(), buffers, kThreadCache, 0, static_cast<std::uint16_t>(bytes), numa_node);
  if (pool != nullptr) return BufferPool(pool);
  return tl::unexpected(log.reason(
      "no memory for " + std::to_string(buffers) + " buffers of " + std::to_string(bytes) + " bytes", rte_errno));
}

std::span<std::uint8_t> memory_of(rte_mempool& pool) {
  std::vector<std::span<std::uint8_t>> pieces;
  rte_mempool_mem_iter(
      &pool,
      [](rte_mempool*, void* to, rte_mempool_memhdr* piece, unsigned) {
        static_cast<std::vector<std::span<std::uint8_t>>*>(to)->emplace_back(static_cast<std::uint8_t*>(piece->addr),
                                                                             piece->len);
      },
      &pieces);
  std::ranges::sort(pieces, {}, [](const auto& piece) { return piece.data(); });
  std::span<std::uint8_t> all;
  for (const auto& piece : pieces) {
    if (!all.empty() && all.data() + all.size() != piece.data()) return {};
    all = {all.empty() ? piece.data() : all.data(), all.size() + piece.size()};
  }
  constexpr std::uintptr_t kPage = 4096;
  const std::size_t before = -reinterpret_cast<std::uintptr_t>(all.data()) % kPage;
  if (all.size() < before + kPage) return {};
  return all.subspan(before, (all.size() - before) / kPage * kPage);
}

}  // namespace penstock::port::dpdk
