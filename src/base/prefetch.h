// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Hints to the CPU that memory will be used soon. They have no other effect, and any address is allowed.

#pragma once

#include <cstddef>
#include <cstdint>

namespace penstock {

inline constexpr std::size_t kCacheLineBytes = 64;

/// Prefetches the cache line that contains `address`.
inline void prefetch(const void* address) noexcept { __builtin_prefetch(address); }

/// Prefetches all cache lines of a range of bytes.
inline void prefetch(const void* address, std::size_t bytes) noexcept {
  const auto first = reinterpret_cast<std::uintptr_t>(address);
  for (std::size_t at = 0; at < bytes; at += kCacheLineBytes) {
    prefetch(reinterpret_cast<const void*>(first + at));  // NOLINT(performance-no-int-to-ptr)
  }
}

template <typename T>
void prefetch_object(const T& object) noexcept {
  prefetch(&object, sizeof object);
}

}  // namespace penstock
