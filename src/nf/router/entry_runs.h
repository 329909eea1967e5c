// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The array of a trie as runs of equal entries, for another process. Leaf-pushed tries repeat: the 16.8 million entries
// of a DIR-24-8 with 10,000 routes are some 20,000 runs. An array that does not repeat stays as it is.
//
//     entries   [ a a a a | b | c c ]   ──▶   values [ a b c ]   ends [ 4 5 7 ]

#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace penstock::router {

/// Run i has the entries from the end of the run before it to ends[i], which are all values[i]. Without ends, the
/// values are the entries. Borrows both.
struct RunSpans {
  std::span<const std::uint32_t> values;
  std::span<const std::uint32_t> ends;

  [[nodiscard]] bool are_entries() const noexcept { return ends.empty(); }
  /// Of entries.
  [[nodiscard]] std::size_t size() const noexcept { return are_entries() ? values.size() : ends.back(); }
  /// Whether each run has a value, an end, and at least one entry.
  [[nodiscard]] bool are_whole() const noexcept;
};

struct EntryRuns {
  std::vector<std::uint32_t> values, ends;
  [[nodiscard]] RunSpans spans() const noexcept { return {values, ends}; }
};

/// Of these entries, with `padding` entries without a route after them. At most 2^32 - 1 in all.
[[nodiscard]] EntryRuns runs_of(std::span<const std::uint32_t> entries, std::size_t padding);

/// Writes the entries, `runs.size()` of them, to the current device, by a kernel of it. Call it for runs that are whole
/// and not entries. Waits; throws CudaError.
void expand_on_device(const RunSpans& runs, std::uint32_t* to);

}  // namespace penstock::router
