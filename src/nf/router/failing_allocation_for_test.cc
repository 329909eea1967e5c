// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "nf/router/failing_allocation_for_test.h"

#include <cstdlib>
#include <new>

namespace {

thread_local bool active = false;
thread_local int allowed_left = 0;
thread_local bool thrown = false;

void* allocated(std::size_t bytes, std::size_t alignment) {
  if (active && allowed_left-- <= 0) {
    allowed_left = 0;
    thrown = true;
    throw std::bad_alloc();
  }
  void* const memory = alignment == 0 ? std::malloc(bytes == 0 ? 1 : bytes)
                                      : std::aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

}  // namespace

void* operator new(std::size_t bytes) { return allocated(bytes, 0); }
void* operator new(std::size_t bytes, std::align_val_t alignment) {
  return allocated(bytes, static_cast<std::size_t>(alignment));
}
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
  try {
    return allocated(bytes, 0);
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}
void operator delete(void* memory, const std::nothrow_t&) noexcept { std::free(memory); }
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }

namespace penstock::router {

FailingAllocation::FailingAllocation(int allowed) noexcept {
  allowed_left = allowed;
  thrown = false;
  active = true;
}
FailingAllocation::~FailingAllocation() { active = false; }
bool FailingAllocation::happened() const noexcept { return thrown; }

}  // namespace penstock::router
