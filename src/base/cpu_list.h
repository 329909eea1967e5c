// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Numbers of logical CPUs, in the text form of Linux's cpusets and of taskset: "2-5,8". A list keeps its order where
// the order matters (one CPU for each worker); as a set of CPUs, it is sorted.

#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace penstock {

using CpuList = std::vector<unsigned>;

/// Linux supports at most 8,192 CPUs.
inline constexpr unsigned kMostCpus = 8192;

/// In the order of the text: "5,2-3" is 5, 2, 3. Empty if the text is not such a list, a range is descending, or a
/// number is kMostCpus or more, or occurs twice.
[[nodiscard]] std::optional<CpuList> parse_cpu_list(std::string_view text);
/// Consecutive numbers as ranges: parse_cpu_list returns the same list.
[[nodiscard]] std::string format_cpu_list(std::span<const unsigned> cpus);

// Sets: sorted lists.
[[nodiscard]] bool contains(const CpuList& set, unsigned cpu) noexcept;
[[nodiscard]] CpuList intersection(const CpuList& a, const CpuList& b);
/// What is in `a` but not in `b`.
[[nodiscard]] CpuList difference(const CpuList& a, const CpuList& b);
[[nodiscard]] CpuList sorted(CpuList cpus);

}  // namespace penstock
