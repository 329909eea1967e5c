// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "nf/router/entry_runs.h"

#include <algorithm>
#include <functional>

#include "nf/router/route_entry.h"

namespace penstock::router {

namespace {

/// Entries that are compared at a time, which compilers do with vectors.
constexpr std::size_t kBlock = 32;

bool is_block_of(const std::uint32_t* entries, std::uint32_t value) noexcept {
  std::uint32_t differences = 0;
  for (std::size_t i = 0; i < kBlock; ++i) differences |= entries[i] ^ value;
  return differences == 0;
}

std::size_t end_of_run(std::span<const std::uint32_t> entries, std::size_t at) noexcept {
  const std::uint32_t value = entries[at++];
  while (at + kBlock <= entries.size() && is_block_of(&entries[at], value)) at += kBlock;
  while (at < entries.size() && entries[at] == value) ++at;
  return at;
}

}  // namespace

bool RunSpans::are_whole() const noexcept {
  if (are_entries()) return true;
  return values.size() == ends.size() && ends.front() > 0 &&
         std::ranges::adjacent_find(ends, std::greater_equal<>()) == ends.end();
}

EntryRuns runs_of(std::span<const std::uint32_t> entries, std::size_t padding) {
  EntryRuns runs;
  const auto add = [&](std::uint32_t value, std::size_t end) {
    runs.values.push_back(value);
    runs.ends.push_back(static_cast<std::uint32_t>(end));
  };
  // A run is twice as large as an entry.
  const std::size_t most_runs = (entries.size() + padding) / 2;
  for (std::size_t at = 0; at < entries.size() && runs.ends.size() < most_runs;) {
    const std::size_t end = end_of_run(entries, at);
    add(entries[at], end);
    at = end;
  }
  if (runs.ends.size() < most_runs) {
    if (padding > 0) add(kNoRouteEntry, entries.size() + padding);
    return runs;
  }
  runs.ends = {};
  runs.values.assign(entries.begin(), entries.end());
  runs.values.resize(entries.size() + padding, kNoRouteEntry);
  return runs;
}

}  // namespace penstock::router
