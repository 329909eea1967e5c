// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "ring/transfer_waits.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <numeric>
#include <utility>

namespace penstock::ring {

std::vector<std::int64_t> transfer_waits(std::span<const Span> spans, std::span<const Timeline::Stream> streams) {
  std::vector<std::size_t> by_ready(spans.size());
  std::iota(by_ready.begin(), by_ready.end(), 0);
  std::ranges::stable_sort(by_ready, {}, [&](std::size_t i) { return spans[i].ready_ns; });
  std::vector<std::int64_t> waits(spans.size(), 0);
  std::map<std::pair<int, Work>, std::int64_t> busy_until;  // end of the earlier transfers, by device and direction
  for (const std::size_t i : by_ready) {
    const Span& span = spans[i];
    if (span.work == Work::kernels) continue;
    const auto [there, is_first] = busy_until.try_emplace({streams[span.stream].device, span.work}, span.end_ns);
    if (is_first) continue;
    std::int64_t& until = there->second;
    waits[i] = std::max<std::int64_t>(0, std::min(until, span.end_ns) - span.ready_ns);
    until = std::max(until, span.end_ns);
  }
  return waits;
}

}  // namespace penstock::ring
