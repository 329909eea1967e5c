// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "experiments/sharing/usage.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/units.h"

namespace penstock::experiments {
namespace {

constexpr double kFrameCheckBits = 32;

using Json = nlohmann::json;

/// The number at the path, such as /packets/in.
Result<double> number(const Json& report, const char* path) {
  const Json::json_pointer at(path);
  if (report.contains(at) && report[at].is_number()) return report[at].get<double>();
  return failure({{}, "the report of a tenant lacks a value", "", path});
}

}  // namespace

Result<Usage> usage_of(const Json& report) {
  Usage usage;
  const std::pair<const char*, double*> values[] = {{"/elapsed_s", &usage.elapsed_s},
                                                    {"/packets/in", &usage.packets},
                                                    {"/bytes/in", &usage.bytes},
                                                    {"/packets/dropped", &usage.dropped},
                                                    {"/pcie/to_device_bytes", &usage.to_device},
                                                    {"/pcie/to_host_bytes", &usage.to_host},
                                                    {"/latency_us/max", &usage.longest_us}};
  const std::pair<const char*, double*> values_of_gpu[] = {{"/gpu/segments", &usage.segments},
                                                           {"/gpu/failures", &usage.failures}};
  const auto read = [&](const auto& of_report) -> Result<void> {
    for (const auto& [path, to] : of_report) {
      const auto value = number(report, path);
      if (!value) return tl::unexpected(value.error());
      *to = *value;
    }
    return {};
  };
  if (auto all = read(values); !all) return tl::unexpected(std::move(all.error()));
  if (report.contains("gpu")) {
    if (auto all = read(values_of_gpu); !all) return tl::unexpected(std::move(all.error()));
  }
  for (const char* const path : {"/packets/forwarded", "/packets/consumed", "/packets/dropped"}) {
    const auto value = number(report, path);
    if (!value) return tl::unexpected(value.error());
    usage.left += *value;
  }
  const auto longer = report.find("latency_longer_than_us");
  if (longer == report.end() || !longer->is_object())
    return failure({{}, "the report of a tenant lacks a value", "", "latency_longer_than_us"});
  for (const auto& [limit, count] : longer->items()) {
    const auto us = parse_number(limit);
    if (us && count.is_number()) usage.longer.emplace_back(*us, count.get<double>());
  }
  std::ranges::sort(usage.longer);
  return usage;
}

double p99_between(const Usage& begin, const Usage& end) {
  constexpr double kLeastUs = 10;  // below the first limit of the report
  const double packets = end.left - begin.left;
  if (packets <= 0) return 0;
  const double allowed = packets / 100;
  double lower = kLeastUs, above_lower = packets;
  for (std::size_t i = 0; i < end.longer.size(); ++i) {
    const double before = i < begin.longer.size() ? begin.longer[i].second : 0;
    const double above = end.longer[i].second - before;
    const double limit = end.longer[i].first;
    if (above <= allowed) {
      // On a logarithmic scale, since the limits are about that far apart.
      const double part = above_lower > above ? (above_lower - allowed) / (above_lower - above) : 1;
      return std::min(lower * std::pow(limit / lower, part), std::max(end.longest_us, lower));
    }
    lower = limit;
    above_lower = above;
  }
  return std::max(end.longest_us, lower);
}

Result<Window> between(const Usage& begin, const Usage& end) {
  const double time = end.elapsed_s - begin.elapsed_s;
  const double packets = end.packets - begin.packets;
  if (time <= 0 || packets <= 0)
    return failure({{}, "a tenant did nothing while it was measured", fmt::format("{} packets", packets), "packets"});
  // Before, while it began, a tenant with a rate may have had to.
  if (end.dropped > begin.dropped)
    return failure({{}, "a tenant dropped packets", fmt::format("{}", end.dropped - begin.dropped), "none"});
  if (end.failures > 0)
    return failure({{}, "batches of a tenant failed on the GPU", fmt::format("{}", end.failures), "0"});
  if (end.segments <= begin.segments)
    return failure({{}, "a tenant did not use the GPU while it was measured", "no batches on the GPU", "some"});
  Window window;
  window.mpps = packets / time / 1e6;
  window.gbps = ((end.bytes - begin.bytes) * 8 + packets * kFrameCheckBits) / time / 1e9;
  window.to_device = (end.to_device - begin.to_device) / time;
  window.to_host = (end.to_host - begin.to_host) / time;
  window.p99_us = p99_between(begin, end);
  return window;
}

double share_error_percent(std::span<const double> rates, std::span<const double> promised) {
  const double all = std::accumulate(rates.begin(), rates.end(), 0.0);
  if (all <= 0) return 0;
  double most = 0;
  for (std::size_t i = 0; i < rates.size(); ++i)
    most = std::max(most, std::abs(rates[i] / all - promised[i]) / promised[i] * 100);
  return most;
}

}  // namespace penstock::experiments
