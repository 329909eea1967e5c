// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Hints to the CPU that memory is used soon. They change nothing, and any address is valid.

#pragma once

#include <cstddef>
#include <cstdint>

namespace penstock {

inline constexpr std::size_t kCacheLineBytes = 64;

/// The cache line of this address.
inline void prefetch(const void* address) noexcept { __builtin_prefetch(address); }

/// All lines of so many bytes, which need not be an object's.
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
