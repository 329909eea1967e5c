// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "base/populate.h"

#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <exception>
#include <thread>
#include <vector>

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

namespace penstock {

namespace {

/// Between two of them, others of the process get its address space.
constexpr std::size_t kSlice = std::size_t{1} << 20;
/// More would compete for the memory's bandwidth, and for the cores of others.
constexpr std::size_t kMostThreads = 4;

}  // namespace

void populate(std::span<std::uint8_t> memory) noexcept {
  const std::size_t slices = (memory.size() + kSlice - 1) / kSlice;
  std::atomic<std::size_t> next{0};
  const auto work = [&] {
    for (std::size_t s = next++; s < slices; s = next++) {
      const std::span<std::uint8_t> slice = memory.subspan(s * kSlice, std::min(kSlice, memory.size() - s * kSlice));
      if (::madvise(slice.data(), slice.size(), MADV_POPULATE_WRITE) != 0) return;
    }
  };
  std::vector<std::jthread> others;
  try {
    const std::size_t threads =
        std::min<std::size_t>({kMostThreads, std::max(1U, std::thread::hardware_concurrency() / 2), slices / 2});
    while (others.size() + 1 < threads) others.emplace_back(work);
  } catch (const std::exception&) {  // fewer threads do it, too
  }
  work();
}

}  // namespace penstock
