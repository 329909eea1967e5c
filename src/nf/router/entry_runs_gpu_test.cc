// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "gpu/memory.h"
#include "nf/router/entry_runs.h"
#include "nf/router/expanded_for_test.h"

namespace penstock::router {
namespace {

void expect_expands_as_on_host(const std::vector<std::uint32_t>& lengths) {
  EntryRuns runs;
  std::uint32_t end = 0;
  for (const std::uint32_t length : lengths) {
    runs.values.push_back(static_cast<std::uint32_t>(runs.values.size() * 3 + 1));
    runs.ends.push_back(end += length);
  }
  gpu::DeviceBuffer<std::uint32_t> entries(runs.spans().size());
  expand_on_device(runs.spans(), entries.data());
  EXPECT_TRUE(entries.to_host() == expanded(runs.spans())) << lengths.size() << " runs, " << end << " entries";
}

TEST(EntryRunsOnDevice, BecomeTheEntries) {
  for (const std::uint32_t length : {1U, 2U, 3U, 4U, 5U, 1023U, 1024U, 1025U, 1U << 24}) {
    expect_expands_as_on_host({length});
    expect_expands_as_on_host({length, 1, 1, length});
  }
  std::mt19937 random(1);
  for (const std::uint32_t longest : {1U, 2U, 10U, 3000U}) {
    std::vector<std::uint32_t> lengths(20'001);
    for (std::uint32_t& length : lengths) length = 1 + static_cast<std::uint32_t>(random() % longest);
    expect_expands_as_on_host(lengths);
  }
}

}  // namespace
}  // namespace penstock::router
