// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "control/live_status.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "report/error_json.h"
#include "report/function_metrics.h"

namespace penstock::control {

namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kMostText = 200;  // bytes of a rule or warning

std::string shortened(std::string text) {
  std::ranges::replace(text, '\t', ' ');  // of ClassBench rules
  if (text.size() > kMostText) text = text.substr(0, kMostText) + "…";
  return penstock::printable(text);
}

Json fork_json(const plan::Fork& fork) {
  Json arms = Json::array();
  for (const plan::Arm& arm : fork.arms)
    arms.push_back({{"first", arm.first}, {"last", arm.last}, {"condition", shortened(arm.text)}});
  return {{"first", fork.first}, {"last", fork.last}, {"arms", arms}, {"all_take_an_arm", fork.exhaustive()}};
}

/// What a function counted for a rule, filter or SA.
struct Hits {
  std::string function, name, text;
  std::string_view unit;
  std::uint64_t count;
};

std::string text_at(const Json& entry, const char* member) {
  const auto found = entry.find(member);
  if (found == entry.end()) return "";
  return found->is_string() ? found->get<std::string>() : found->dump();
}

/// Of the lists of docs/report.md, "Details of functions".
void add_hits(const report::FunctionReport& function, std::vector<Hits>& hits) {
  const auto add = [&](const char* list, const char* unit, auto name_of, const char* text) {
    const auto entries = function.details.find(list);
    if (entries == function.details.end() || !entries->is_array()) return;
    for (const Json& entry : *entries) {
      const std::uint64_t count = report::count_in(entry, unit).value_or(0);
      if (count > 0) hits.push_back({function.name, name_of(entry), text_at(entry, text), unit, count});
    }
  };
  if (!function.details.is_object()) return;
  add(
      "rules", "packets", [](const Json& rule) { return "line " + text_at(rule, "line"); }, "text");
  add(
      "rules", "alerts", [](const Json& rule) { return text_at(rule, "gid") + ":" + text_at(rule, "sid"); }, "message");
  add(
      "filters", "packets", [](const Json& filter) { return text_at(filter, "name"); }, "expression");
}

/// Those with the most, by unit.
Json top_json(const report::RunReport& report, std::string_view unit) {
  std::vector<Hits> hits;
  for (const report::FunctionReport& function : report.functions) add_hits(function, hits);
  std::erase_if(hits, [unit](const Hits& one) { return one.unit != unit; });
  const std::size_t shown = std::min(hits.size(), kMostShown);
  std::ranges::partial_sort(hits, hits.begin() + static_cast<std::ptrdiff_t>(shown), std::greater{}, &Hits::count);
  Json json = Json::array();
  for (std::size_t i = 0; i < shown; ++i) {
    json.push_back({{"function", hits[i].function},
                    {"name", shortened(hits[i].name)},
                    {"text", shortened(hits[i].text)},
                    {"count", hits[i].count}});
  }
  return json;
}

/// The report without what grows with rules.
Json report_json(const report::RunReport& report) {
  Json json = report::to_json(report);
  for (Json& function : json["functions"]) function.erase("details");
  return json;
}

Json alerts_json(const report::RunReport& report) {
  std::uint64_t alerts = 0;
  bool any = false;
  for (const report::FunctionReport& function : report.functions) {
    const auto count = report::count_in(function.details, "alerts");
    if (!count) continue;
    any = true;
    alerts += *count;
  }
  return any ? Json(alerts) : Json();
}

Json histogram_json(const report::TimeHistogram& times) {
  Json at_most = Json::array();
  for (const auto& [limit, count] : times.at_most)
    at_most.push_back({std::chrono::duration<double, std::micro>(limit).count(), count});
  return {{"count", times.count}, {"at_most_us", at_most}};
}

Json warnings_json(const Json& status) {
  Json json = Json::array();
  for (const char* const kind : {"cautions", "without_effect", "unsupported"}) {
    for (const Error& error : report::errors_of(status.at(kind))) {
      if (json.size() < kMostShown) json.push_back(shortened(to_string(error)));
    }
  }
  return json;
}

}  // namespace

Json plan_json(const run::Chain& chain) {
  const plan::Processors processors = chain.processors();
  Json functions = Json::array();
  for (std::size_t f = 0; f < chain.functions.size(); ++f)
    functions.push_back({{"name", chain.functions[f].name}, {"processor", function::name(processors[f])}});
  Json forks = Json::array();
  for (const plan::Fork& fork : chain.forks) forks.push_back(fork_json(fork));
  return {{"functions", functions}, {"forks", forks}};
}

Json live_json(const Json& plan, const Json& status, const report::RunReport* report, const report::RunFacts& facts) {
  Json json;
  for (const char* const member : {"penstock", "chain", "state", "started", "elapsed_s", "processor", "ports"})
    json[member] = status.at(member);
  json["last_reload"] = nullptr;
  if (const Json& last = status.at("last_reload"); !last.is_null())
    json["last_reload"] = {{"what", last["what"]}, {"outcome", last["outcome"]}, {"at", last["at"]}};
  json["warnings"] = warnings_json(status);
  json["plan"] = plan;
  json["report"] = nullptr;
  if (report == nullptr) return json;
  json["report"] = report_json(*report);
  json["latency"] = histogram_json(report->latencies);
  json["alerts"] = alerts_json(*report);
  json["top_alerts"] = top_json(*report, "alerts");
  json["top_rules"] = top_json(*report, "packets");
  json["gpu_use"] = Json::array();
  for (const auto& [gpu, use] : facts.gpu_use) json["gpu_use"].push_back({{"gpu", gpu}, {"busy", use}});
  return json;
}

}  // namespace penstock::control
