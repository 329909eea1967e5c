// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "base/shared_memory.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <string>

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

TEST(SharedMemory, CannotBeWrittenByAReadOnlyDescriptor) {
  const int file = make_shared_file("test", 4096);
  const int reader = read_only_file(file);
  ASSERT_GE(reader, 0);
  EXPECT_TRUE(is_sealed(reader, 4096));
  EXPECT_EQ(::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, reader, 0), MAP_FAILED);
  EXPECT_NE(::fallocate(reader, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 4096), 0);
  void* const seen = ::mmap(nullptr, 4096, PROT_READ, MAP_SHARED, reader, 0);
  ASSERT_NE(seen, MAP_FAILED);
  ASSERT_EQ(::pwrite(file, "x", 1, 7), 1);
  EXPECT_EQ(static_cast<const char*>(seen)[7], 'x');
  ::munmap(seen, 4096);
  if (::geteuid() == 0 && ::seteuid(65534) == 0) {
    const std::string path = "/proc/self/fd/" + std::to_string(reader);
    EXPECT_LT(::open(path.c_str(), O_RDWR), 0) << "another user opens it for writing";
    ASSERT_EQ(::seteuid(0), 0);
  }
  ::close(reader);
  ::close(file);
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
