// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "experiments/live/recommend.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <string_view>
#include <tuple>

#include "base/units.h"
#include "experiments/live/arrangement.h"
#include "experiments/text_rows.h"

namespace penstock::experiments {
namespace {

constexpr std::array<double, 4> kBoundsMs{50, 100, 250, 500};
constexpr const char* kRulesFile = "live.rules";

bool is_system(const Point& point) { return point.text("system") == "araujo" || point.text("system") == "ours"; }

double number(const Point& point, const char* key) {
  return point.number(key).value_or(std::numeric_limits<double>::infinity());
}

std::vector<std::string> rates_of(const Record& record) {
  std::vector<std::string> rates;
  for (const Point& point : record.points) {
    const std::string rate = point.text("rate");
    if (is_system(point) && std::ranges::find(rates, rate) == rates.end()) rates.push_back(rate);
  }
  const auto order = [](const std::string& rate) {
    return parse_number(rate).value_or(std::numeric_limits<double>::infinity());
  };
  std::ranges::stable_sort(rates, {}, order);
  return rates;
}

const Point* point_of(const Record& record, const char* system, const char* processor, const std::string& buffer,
                      const std::string& rate) {
  const std::vector<Condition> where{
      {"system", {system}}, {"processor", {processor}}, {"buffer", {buffer}}, {"rate", {rate}}};
  const auto there = std::ranges::find_if(record.points, [&](const Point& p) { return satisfies(p, where); });
  return there == record.points.end() ? nullptr : &*there;
}

/// "ours on the CPU", "GPU (4MiB)", as in the paper.
std::string name_of(const Point& point) {
  std::string name = point.text("processor") == "gpu" ? "GPU" : "CPU";
  if (point.text("system") == "ours") return "ours, " + name;
  return point.text("buffer") == "none" ? name : fmt::format("{} ({})", name, point.text("buffer"));
}

/// The rate; what was really sent, if a point got less than 95 percent of it.
std::string rate_text(const Record& record, const std::string& rate) {
  const auto wished = parse_number(rate);
  double least = std::numeric_limits<double>::infinity();
  for (const Point& point : record.points) {
    if (is_system(point) && point.text("rate") == rate) least = std::min(least, number(point, "sent_mbps"));
  }
  constexpr double kReached = 0.95;
  return !wished || least >= kReached * *wished ? rate : fmt::format("{} ({:.0f} sent)", rate, least);
}

/// The CPU's delay divided by the GPU's, in Araujo's arrangement. Marked where both lose packets.
std::string speedups(const Record& record, const std::vector<std::string>& rates, Style style) {
  TableRows rows;
  bool any = false;
  const auto loses = [](const Point& point) { return point.number("lost_percent").value_or(0) > 0; };
  const auto add = [&](const char* system, const char* processor, const char* buffer, const std::string& name) {
    std::vector<std::string>& row = rows.emplace_back(1, name);
    for (const std::string& rate : rates) {
      const Point* const cpu = point_of(record, "araujo", "cpu", "none", rate);
      const Point* const here = point_of(record, system, processor, buffer, rate);
      const bool both = cpu != nullptr && here != nullptr && number(*here, "delay_ms") > 0;
      any |= both;
      row.push_back(!both ? ""
                          : fmt::format("{:.3g}{}", number(*cpu, "delay_ms") / number(*here, "delay_ms"),
                                        loses(*cpu) && loses(*here) ? "*" : ""));
    }
    if (std::ranges::all_of(row.begin() + 1, row.end(), [](const std::string& cell) { return cell.empty(); }))
      rows.pop_back();
  };
  for (const char* const buffer : kLiveBuffers) add("araujo", "gpu", buffer, buffer);
  add("ours", "gpu", "none", "ours, GPU");
  add("ours", "cpu", "none", "ours, CPU");
  if (!any) return {};
  std::vector<std::string> head{">buffer"};
  for (const std::string& rate : rates) head.push_back('>' + rate);
  return table_of_texts(
      "Table 2: mean delay of Araujo's arrangement on the CPU ÷ mean delay, by Mbit/s sent (*: both lost packets)",
      head, rows, style);
}

std::string recommendations(const Record& record, const std::vector<std::string>& rates, Style style) {
  std::vector<std::string> head{">Mbit/s sent"};
  for (const double bound : kBoundsMs) head.push_back(fmt::format(">{:.0f} ms", bound));
  TableRows rows;
  for (const std::string& rate : rates) {
    std::vector<std::string>& row = rows.emplace_back(1, rate_text(record, rate));
    for (const double bound : kBoundsMs) {
      const Point* const point = recommended(record, rate, bound);
      row.push_back(point == nullptr ? "none" : name_of(*point));
      const double lost = point == nullptr ? 0 : number(*point, "lost_percent");
      if (lost > 0) row.back() += fmt::format(" {:.1f} % lost", lost);
    }
  }
  return table_of_texts("Table 3: recommended configuration, by rate and bound of the mean delay", head, rows, style);
}

}  // namespace

const Point* recommended(const Record& record, const std::string& rate, double bound_ms) {
  const Point* best = nullptr;
  const auto cost = [](const Point& point) {
    return std::tuple(number(point, "lost_percent") + number(point, "waiting_percent"), number(point, "cpu_percent"));
  };
  for (const Point& point : record.points) {
    if (!is_system(point) || point.text("rate") != rate || number(point, "delay_ms") > bound_ms) continue;
    if (best == nullptr || cost(point) < cost(*best)) best = &point;
  }
  return best;
}

std::string live_tables(const Record& record, Style style) {
  const std::vector<std::string> rates = rates_of(record);
  if (rates.empty()) return {};
  const std::string table2 = speedups(record, rates, style);
  return (table2.empty() ? "" : table2 + '\n') + recommendations(record, rates, style);
}

std::vector<ChainFile> live_chain_files(const Record& record) {
  std::vector<ChainFile> files;
  for (const std::string& rate : rates_of(record)) {
    for (const double bound : kBoundsMs) {
      const Point* const point = recommended(record, rate, bound);
      if (point == nullptr) continue;
      const std::string what = fmt::format("{} Mbit/s within {:.0f} ms", rate_text(record, rate), bound);
      files.push_back({fmt::format("live-{}-{:.0f}ms.yaml", rate, bound),
                       fmt::format("# {}: {}. Measured: {:.3g} ms, {:.3g} % lost.\n", what, name_of(*point),
                                   number(*point, "delay_ms"), number(*point, "lost_percent")) +
                           live_chain(*point, "eth0", "", kRulesFile, "")});
    }
  }
  if (!files.empty()) files.push_back({kRulesFile, live_rules()});
  return files;
}

}  // namespace penstock::experiments
