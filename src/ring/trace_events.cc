// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "ring/trace_events.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <span>
#include <vector>

#include "report/json_text.h"
#include "ring/transfer_waits.h"

namespace penstock::ring {
namespace {

std::string quoted(std::string_view text) {
  std::string json = "\"";
  report::append_json_escaped(json, text);
  return json + '"';
}

double us(std::int64_t ns) { return static_cast<double>(ns) / 1e3; }

/// The names of processes and threads. A worker has one device.
void append_names(std::string& out, std::span<const Timeline::Stream> streams) {
  for (const Timeline::Stream& stream : streams) {
    if (stream.number == 0) {
      fmt::format_to(
          std::back_inserter(out),
          "{{\"name\":\"process_name\",\"ph\":\"M\",\"pid\":{},\"args\":{{\"name\":\"worker {} on GPU {}\"}}}},\n",
          stream.worker, stream.worker, stream.device);
    }
    fmt::format_to(
        std::back_inserter(out),
        "{{\"name\":\"thread_name\",\"ph\":\"M\",\"pid\":{},\"tid\":{},\"args\":{{\"name\":\"stream {}\"}}}},\n",
        stream.worker, stream.number, stream.number);
  }
}

}  // namespace

std::string trace_events_json(const Timeline& timeline) {
  const std::vector<Span> spans = timeline.spans();
  const std::vector<std::int64_t> waits = transfer_waits(spans, timeline.streams());
  std::int64_t start = 0;
  if (!spans.empty()) start = std::ranges::min(spans, {}, &Span::enqueued_ns).enqueued_ns;
  std::vector<std::string> names;  // as JSON; by segment, then by work
  for (const std::string& segment : timeline.segments()) {
    for (const std::string_view work : kWorkNames) names.push_back(quoted(fmt::format("{}: {}", work, segment)));
  }
  std::string out = fmt::format("{{\"displayTimeUnit\":\"ns\",\"otherData\":{{\"spans\":{},\"spans_before\":{}}},\n",
                                spans.size(), timeline.left_out(spans));
  out += "\"traceEvents\":[\n";
  append_names(out, timeline.streams());
  for (std::size_t i = 0; i < spans.size(); ++i) {
    const Span& span = spans[i];
    const auto work = static_cast<std::size_t>(span.work);
    const Timeline::Stream& stream = timeline.streams()[span.stream];
    fmt::format_to(
        std::back_inserter(out),
        "{{\"name\":{},\"cat\":\"{}\",\"ph\":\"X\",\"ts\":{:.3f},\"dur\":{:.3f},\"pid\":{},\"tid\":{},\"args\":{{"
        "\"batch\":{},\"packets\":{},\"bytes_to_device\":{},\"bytes_to_host\":{},\"enqueued_us\":{:.3f}",
        names.at(span.segment * std::size(kWorkNames) + work), kWorkNames[work], us(span.ready_ns - start),
        us(span.end_ns - span.ready_ns), stream.worker, stream.number, span.batch, span.packets, span.crossed.to_device,
        span.crossed.to_host, us(span.enqueued_ns - start));
    if (span.work != Work::kernels) fmt::format_to(std::back_inserter(out), ",\"waited_us\":{:.3f}", us(waits[i]));
    out += "}},\n";
  }
  if (out.ends_with(",\n")) out.resize(out.size() - 2);
  return out + "\n]}\n";
}

}  // namespace penstock::ring
