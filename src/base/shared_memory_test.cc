// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "base/shared_memory.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

namespace penstock {
namespace {

TEST(SharedMemory, IsFoundByItsAddressUntilItIsUnmapped) {
  auto* const memory = static_cast<std::uint8_t*>(map_memory(8192, true));
  const auto part = shared_part_of({memory + 4096, 4096});
  ASSERT_TRUE(part);
  EXPECT_EQ(part->offset, 4096U);
  EXPECT_EQ(part->file_bytes, 8192U);
  EXPECT_FALSE(shared_part_of({memory + 4096, 4097}));
  EXPECT_FALSE(shared_part_of({memory - 1, 1}));
  unmap_memory(memory, 8192);
  EXPECT_FALSE(shared_part_of({memory, 4096}));
}

TEST(SharedMemory, IsSeenByWhoMapsItsFile) {
  auto* const memory = static_cast<std::uint8_t*>(map_memory(4096, true));
  const auto part = shared_part_of({memory, 4096});
  ASSERT_TRUE(part);
  void* const other = ::mmap(nullptr, 4096, PROT_READ, MAP_SHARED, part->file, 0);
  ASSERT_NE(other, MAP_FAILED);
  memory[100] = 7;
  EXPECT_EQ(static_cast<std::uint8_t*>(other)[100], 7);
  ::munmap(other, 4096);
  unmap_memory(memory, 4096);
}

TEST(SharedMemory, CannotChangeItsSize) {
  const int file = make_shared_file("test", 8192);
  ASSERT_GE(file, 0);
  EXPECT_TRUE(is_sealed(file, 8192));
  EXPECT_FALSE(is_sealed(file, 8193));
  EXPECT_NE(::ftruncate(file, 4096), 0);
  EXPECT_NE(::ftruncate(file, 16384), 0);
  ::close(file);
}

TEST(SharedMemory, WithoutSealsIsNotSealed) {
  const int file = ::memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  ASSERT_EQ(::ftruncate(file, 4096), 0);
  EXPECT_FALSE(is_sealed(file, 4096));
  ::close(file);
  EXPECT_FALSE(is_sealed(STDIN_FILENO, 0));
  EXPECT_FALSE(is_sealed(-1, 0));
}

TEST(SharedMemory, CannotBeMappedForWritingOnceThatIsSealed) {
  const int file = make_shared_file("test", 4096);
  void* const mine = ::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  ASSERT_NE(mine, MAP_FAILED);
  ASSERT_TRUE(seal_writes(file));
  EXPECT_EQ(::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0), MAP_FAILED);
  void* const other = ::mmap(nullptr, 4096, PROT_READ, MAP_SHARED, file, 0);
  ASSERT_NE(other, MAP_FAILED);
  EXPECT_NE(::mprotect(other, 4096, PROT_READ | PROT_WRITE), 0);
  static_cast<std::uint8_t*>(mine)[0] = 3;
  EXPECT_EQ(static_cast<std::uint8_t*>(other)[0], 3);
  ::munmap(mine, 4096);
  ::munmap(other, 4096);
  ::close(file);
}

TEST(Memory, ThatIsNotSharedIsNotFound) {
  auto* const memory = static_cast<std::uint8_t*>(map_memory(4096, false));
  EXPECT_EQ(memory[5], 0);
  EXPECT_FALSE(shared_part_of({memory, 4096}));
  unmap_memory(memory, 4096);
}

}  // namespace
}  // namespace penstock
