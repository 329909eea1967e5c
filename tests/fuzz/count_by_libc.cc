// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Counts allocations in builds without a sanitizer, with wrappers of glibc's malloc and its relatives. Memory that is
// mapped directly is not counted.

#include <malloc.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "fuzz/cost_limits.h"

extern "C" {
void* __libc_malloc(std::size_t size);
void* __libc_calloc(std::size_t count, std::size_t size);
void* __libc_realloc(void* block, std::size_t size);
void* __libc_memalign(std::size_t alignment, std::size_t size);
void __libc_free(void* block);
}

namespace {

std::int64_t size_of(void* block) { return static_cast<std::int64_t>(malloc_usable_size(block)); }

void* counted(void* block) {
  penstock::fuzz::count_allocation(size_of(block));
  return block;
}

}  // namespace

namespace penstock::fuzz {
void start_counting() noexcept {}  // counts from the program's start
}  // namespace penstock::fuzz

extern "C" {

void* malloc(std::size_t size) { return counted(__libc_malloc(size)); }
void* calloc(std::size_t count, std::size_t size) { return counted(__libc_calloc(count, size)); }
void* memalign(std::size_t alignment, std::size_t size) { return counted(__libc_memalign(alignment, size)); }
void* aligned_alloc(std::size_t alignment, std::size_t size) { return memalign(alignment, size); }

int posix_memalign(void** block, std::size_t alignment, std::size_t size) {
  void* const made = memalign(alignment, size);
  if (made == nullptr) return ENOMEM;
  *block = made;
  return 0;
}

void* realloc(void* block, std::size_t size) {
  const std::int64_t before = size_of(block);
  void* const made = __libc_realloc(block, size);
  // If there is no memory, the block stays.
  if (made != nullptr || size == 0) penstock::fuzz::count_allocation(size_of(made) - before);
  return made;
}

void* reallocarray(void* block, std::size_t count, std::size_t size) {
  std::size_t bytes = 0;
  if (__builtin_mul_overflow(count, size, &bytes)) {
    errno = ENOMEM;
    return nullptr;
  }
  return realloc(block, bytes);
}

void free(void* block) {
  penstock::fuzz::count_allocation(-size_of(block));
  __libc_free(block);
}

}  // extern "C"
