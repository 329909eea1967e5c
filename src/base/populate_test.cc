// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "base/populate.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <vector>

#include "base/shared_memory.h"

namespace penstock {
namespace {

std::size_t resident_pages(std::span<std::uint8_t> memory) {
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  std::vector<unsigned char> pages((memory.size() + page - 1) / page);
  EXPECT_EQ(::mincore(memory.data(), memory.size(), pages.data()), 0);
  return static_cast<std::size_t>(std::ranges::count_if(pages, [](unsigned char p) { return (p & 1) != 0; }));
}

bool can_populate() {
  const MappedMemory page(4096, false);
  populate(page.bytes());
  return resident_pages(page.bytes()) == 1;
}

TEST(Populate, AllocatesAllPagesAndKeepsWhatTheyHave) {
  if (!can_populate()) GTEST_SKIP() << "this kernel has no MADV_POPULATE_WRITE";
  for (const bool shared : {false, true}) {
    for (const std::size_t bytes : {std::size_t{4096}, std::size_t{5} << 20, (std::size_t{33} << 20) + 8192}) {
      const MappedMemory memory(bytes, shared);
      memory.bytes()[bytes / 2] = 7;
      populate(memory.bytes());
      EXPECT_EQ(resident_pages(memory.bytes()), bytes / 4096) << bytes << " bytes, shared: " << shared;
      EXPECT_EQ(memory.bytes()[bytes / 2], 7);
    }
  }
}

TEST(Populate, TakesNoMemoryAsPopulated) { populate({}); }

}  // namespace
}  // namespace penstock
