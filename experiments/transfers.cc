// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "experiments/transfers.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "experiments/bars.h"
#include "ring/transfer_waits.h"

namespace penstock::experiments {
namespace {

using ring::Span;

constexpr std::int64_t kShownNs = 2'000'000;
constexpr std::size_t kMostBars = 400;  // stored in a point of a record

struct Sum {
  std::size_t count = 0;
  std::size_t waiting = 0;
  double us = 0, waited_us = 0, bytes = 0;

  void add(const Span& span, std::int64_t waited_ns) {
    ++count;
    waiting += waited_ns > 0 ? 1 : 0;
    us += static_cast<double>(span.end_ns - span.ready_ns) / 1e3;
    waited_us += static_cast<double>(waited_ns) / 1e3;
    bytes += static_cast<double>(span.crossed.to_device);
  }
  [[nodiscard]] double mean(double sum) const { return sum / static_cast<double>(count); }
};

/// Rounded to a tenth of a microsecond.
double us_since(std::int64_t begin_ns, std::int64_t ns) {
  return std::round(static_cast<double>(ns - begin_ns) / 100) / 10;
}

}  // namespace

Point transfers_of(const ring::Timeline& timeline) {
  const std::vector<Span> spans = timeline.spans();
  if (spans.empty()) return {};
  const std::vector<std::int64_t> waits = ring::transfer_waits(spans, timeline.streams());
  const std::int64_t all_ns = spans.back().ready_ns - spans.front().ready_ns;
  const std::int64_t begin_ns = spans.front().ready_ns + all_ns / 4;
  const std::int64_t end_ns = spans.front().ready_ns + all_ns / 10 * 9;
  const std::int64_t shown_ns = begin_ns + std::max<std::int64_t>(0, end_ns - begin_ns - kShownNs) / 2;
  Sum all;
  double copies_us = 0;
  double busy_us = 0;
  std::vector<Sum> of_segments(timeline.segments().size());
  std::vector<BarRow> rows;
  for (const std::string& name : timeline.segments()) rows.push_back({name, {}});
  std::size_t bars = 0;
  for (std::size_t i = 0; i < spans.size(); ++i) {
    const Span& span = spans[i];
    if (span.ready_ns < begin_ns || span.ready_ns >= end_ns) continue;
    const double us = static_cast<double>(span.end_ns - span.ready_ns) / 1e3;
    busy_us += us;
    if (span.work != ring::Work::kernels) copies_us += us;
    if (span.work != ring::Work::to_device) continue;
    all.add(span, waits[i]);
    of_segments.at(span.segment).add(span, waits[i]);
    if (span.ready_ns < shown_ns || span.ready_ns >= shown_ns + kShownNs || ++bars > kMostBars) continue;
    const double length = us_since(span.ready_ns, span.end_ns);
    rows.at(span.segment)
        .bars.push_back({us_since(shown_ns, span.ready_ns), std::min(length, us_since(0, waits[i])), length});
  }
  if (all.count == 0) return {};
  Point results;
  results.set("transfers_per_ms", static_cast<double>(all.count) * 1e6 / static_cast<double>(end_ns - begin_ns));
  results.set("transfer_bytes", all.mean(all.bytes)).set("transfer_us", all.mean(all.us));
  results.set("waited_us", all.mean(all.waited_us));
  results.set("waiting", 100 * all.mean(static_cast<double>(all.waiting)));
  for (std::size_t s = 0; s < of_segments.size(); ++s) {
    const Sum& sum = of_segments[s];
    const std::string& name = timeline.segments()[s];
    if (sum.count == 0) continue;
    const std::string first = name.substr(0, name.find(','));
    results.set("transfer_us_" + first, sum.mean(sum.us)).set("transfer_bytes_" + first, sum.mean(sum.bytes));
    results.set("waited_us_" + first, sum.mean(sum.waited_us));
  }
  results.set("transfer_percent", 100 * copies_us / busy_us);
  return results.set("transfers", bars_text(rows));
}

}  // namespace penstock::experiments
