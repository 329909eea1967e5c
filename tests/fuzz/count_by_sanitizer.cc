// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Counts allocations in builds with a sanitizer, which has its own allocator.

#include <cstddef>
#include <cstdint>

#include "fuzz/cost_limits.h"

// From <sanitizer/allocator_interface.h>, which GCC does not install.
extern "C" {
int __sanitizer_install_malloc_and_free_hooks(void (*malloc_hook)(const volatile void*, std::size_t),
                                              void (*free_hook)(const volatile void*));
std::size_t __sanitizer_get_allocated_size(const volatile void* block);
}

namespace {

void on_malloc(const volatile void*, std::size_t size) {
  penstock::fuzz::count_allocation(static_cast<std::int64_t>(size));
}

void on_free(const volatile void* block) {
  if (block == nullptr) return;
  const std::size_t size = __sanitizer_get_allocated_size(block);
  penstock::fuzz::count_allocation(-static_cast<std::int64_t>(size));
}

}  // namespace

namespace penstock::fuzz {
void start_counting() noexcept { __sanitizer_install_malloc_and_free_hooks(&on_malloc, &on_free); }
}  // namespace penstock::fuzz
