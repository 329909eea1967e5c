// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "base/cpu_list.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <iterator>

#include "base/decimal.h"
#include "base/text_file.h"

namespace penstock {

std::optional<CpuList> parse_cpu_list(std::string_view text) {
  CpuList cpus;
  std::vector<bool> seen(kMostCpus);
  for (const std::string_view part : split(text, ',')) {
    const std::string_view range = trimmed(part);
    const std::size_t dash = range.find('-');
    const auto first = parse_decimal(range.substr(0, dash), kMostCpus - 1);
    const auto last = dash == std::string_view::npos ? first : parse_decimal(range.substr(dash + 1), kMostCpus - 1);
    if (!first || !last || *last < *first) return std::nullopt;
    for (unsigned cpu = *first; cpu <= *last; ++cpu) {
      if (seen[cpu]) return std::nullopt;
      seen[cpu] = true;
      cpus.push_back(cpu);
    }
  }
  return cpus;
}

std::string format_cpu_list(std::span<const unsigned> cpus) {
  std::string text;
  for (std::size_t first = 0; first < cpus.size();) {
    std::size_t last = first;
    while (last + 1 < cpus.size() && cpus[last + 1] == cpus[last] + 1) ++last;
    if (!text.empty()) text += ',';
    text += last == first ? fmt::format("{}", cpus[first]) : fmt::format("{}-{}", cpus[first], cpus[last]);
    first = last + 1;
  }
  return text;
}

bool contains(const CpuList& set, unsigned cpu) noexcept { return std::ranges::binary_search(set, cpu); }

CpuList intersection(const CpuList& a, const CpuList& b) {
  CpuList both;
  std::ranges::set_intersection(a, b, std::back_inserter(both));
  return both;
}

CpuList difference(const CpuList& a, const CpuList& b) {
  CpuList rest;
  std::ranges::set_difference(a, b, std::back_inserter(rest));
  return rest;
}

CpuList sorted(CpuList cpus) {
  std::ranges::sort(cpus);
  return cpus;
}

}  // namespace penstock
