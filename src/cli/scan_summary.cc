// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "cli/scan_summary.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>

#include "base/units.h"
#include "report/text_table.h"

namespace penstock::cli {

namespace {

using Json = nlohmann::ordered_json;

/// The number of captures with errors.
std::size_t bad_captures(const std::vector<std::string>& captures, const Errors& errors) {
  return static_cast<std::size_t>(std::ranges::count_if(captures, [&](const std::string& path) {
    const std::string name = path == "-" ? "standard input" : path;
    return std::ranges::any_of(errors, [&](const Error& error) { return error.place.file == name; });
  }));
}

std::string profile_table(const Json& profile) {
  constexpr std::size_t kTop = 20;
  const auto number = [](const Json& value) { return value.get<std::uint64_t>(); };
  double all = 0;
  for (const Json& rule : profile) all += rule["work"].get<double>();
  report::TextTable table({">work", ">share", ">evaluations", ">matches", ">gid", ">sid", "rule"});
  for (std::size_t i = 0; i < std::min(kTop, profile.size()); ++i) {
    const Json& rule = profile[i];
    table.add_row({format_count(number(rule["work"])),
                   fmt::format("{:.1f} %", all == 0 ? 0 : rule["work"].get<double>() / all * 100),
                   format_count(number(rule["evaluations"])), format_count(number(rule["matches"])),
                   std::to_string(number(rule["gid"])), std::to_string(number(rule["sid"])),
                   printable(rule["message"].get<std::string>())});
  }
  std::string text = fmt::format("\n{} evaluated, by cost\n", format_count(profile.size(), "rule"));
  if (!profile.empty()) text += '\n' + table.text();
  if (profile.size() > kTop)
    text += fmt::format("… and {}; --json shows all\n", format_count(profile.size() - kTop, "more rule"));
  return text;
}

}  // namespace

Json scan_summary(const std::vector<std::string>& captures, const report::RunReport& report, const Errors& errors) {
  const Json& details = report.functions.front().details;
  Json summary;
  summary["captures"] = captures;
  summary["packets"] = report.in.packets;
  summary["bytes"] = report.in.bytes;
  if (report.dropped.packets != 0) summary["dropped"] = report.dropped.packets;
  summary["flows"] = details["stack"]["flows"];
  summary["alerts"] = 0;
  for (const Json& rule : details["rules"])
    summary["alerts"] = summary["alerts"].get<std::uint64_t>() + rule["alerts"].get<std::uint64_t>();
  summary["processor"] = report.processor;
  summary["workers"] = report.workers;
  summary["elapsed_s"] = report.elapsed_s();
  summary["rate"] = report::rate_json(report);
  for (const char* part : {"rules", "load", "inspection", "stack"}) summary[part] = details[part];
  if (details.contains("profile")) summary["profile"] = details["profile"];
  if (details.contains("warnings")) summary["warnings"] = details["warnings"];
  if (const std::size_t bad = bad_captures(captures, errors); bad > 0 && captures.size() > 1) {
    summary["warnings"].push_back(
        fmt::format("{} of {} captures could not be read, or not completely", bad, captures.size()));
  }
  summary["errors"] = Json::array();
  for (const Error& error : errors) summary["errors"].push_back(to_string(error));
  return summary;
}

std::string scan_tables(const Json& summary, const std::string& load_table) {
  constexpr std::size_t kTop = 20;
  const auto number = [](const Json& value) { return value.get<std::uint64_t>(); };
  const Json& rules = summary["rules"];
  std::string text = fmt::format(
      "{}, {} in {}; {:.3f} s, {}bit/s, {}pps by {} on the {}\n", format_count(number(summary["packets"]), "packet"),
      format_size(number(summary["bytes"])), format_count(number(summary["flows"]), "flow"),
      summary["elapsed_s"].get<double>(), format_si(summary["rate"]["bits_per_s"].get<double>()),
      format_si(summary["rate"]["packets_per_s"].get<double>()), format_count(number(summary["workers"]), "worker"),
      summary["processor"] == "gpu" ? "GPU" : "CPU");
  if (summary.contains("dropped"))
    text += fmt::format("{} dropped\n", format_count(number(summary["dropped"]), "packet"));
  text +=
      fmt::format("{} from {}\n", format_count(number(summary["alerts"]), "alert"), format_count(rules.size(), "rule"));
  if (summary.contains("warnings")) {
    for (const Json& warning : summary["warnings"]) text += fmt::format("warning: {}\n", warning.get<std::string>());
  }
  if (!rules.empty()) {
    report::TextTable table({">alerts", ">gid", ">sid", ">rev", "rule"});
    for (std::size_t i = 0; i < std::min(kTop, rules.size()); ++i) {
      const Json& rule = rules[i];
      table.add_row({format_count(number(rule["alerts"])), std::to_string(number(rule["gid"])),
                     std::to_string(number(rule["sid"])), std::to_string(number(rule["rev"])),
                     printable(rule["message"].get<std::string>())});
    }
    text += '\n' + table.text();
    if (rules.size() > kTop)
      text += fmt::format("… and {}; --json shows all\n", format_count(rules.size() - kTop, "more rule"));
  }
  if (summary.contains("profile")) text += profile_table(summary["profile"]);
  return text + '\n' + load_table;
}

}  // namespace penstock::cli
