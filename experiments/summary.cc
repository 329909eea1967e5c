// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "experiments/summary.h"

#include <fmt/format.h>

#include <vector>

#include "base/units.h"
#include "report/text_table.h"

namespace penstock::experiments {

std::string machine_text(const Record::Machine& machine) {
  std::string text = fmt::format("{}, {}, {}", machine.cpu.empty() ? "unknown CPU" : machine.cpu,
                                 format_count(machine.cores, "core"), format_size(machine.memory_bytes));
  for (const Record::Gpu& gpu : machine.gpus) text += fmt::format("; GPU {}: {}", gpu.index, gpu.name);
  if (!machine.driver.empty()) text += fmt::format(", driver {}", machine.driver);
  return machine.gpus.empty() ? text + "; no GPU" : text;
}

namespace {

std::string limits_text(const Point& limits) {
  std::string text;
  const auto add = [&](const std::string& what, const std::string& key) {
    if (const auto rate = limits.number(key)) text += fmt::format("{}{} {:.1f}", text.empty() ? "" : ", ", what, *rate);
  };
  add("PCIe to the device", "pcie_to_device");
  add("to the host", "pcie_to_host");
  add("both at once, each way", "pcie_both_each_way");
  for (const char* gpus : {"2", "4", "8"}) {
    add(fmt::format("of {} GPUs together", gpus), std::string("pcie_both_each_way_of_") + gpus);
  }
  add("host memory copied by one core", "memory_copy_one_core");
  add("by all", "memory_copy_all_cores");
  return text.empty() ? text : text + " GB/s";
}

/// The prices and power from which rates were computed (costs.h).
std::string costs_text(const Point& limits) {
  std::string text;
  const auto add = [&](const char* what, const std::string& key) {
    const auto dollars = limits.number(key + "_dollars");
    const auto watts = limits.number(key + "_watts");
    if (dollars && watts) text += fmt::format("{}{} ${}, {} W", text.empty() ? "" : "; ", what, *dollars, *watts);
  };
  add("a core", "core");
  add("a GPU", "gpu");
  return text;
}

}  // namespace

std::string summary(const Experiment& experiment, const Record& record, Style style) {
  std::vector<std::pair<const char*, std::string>> lines{
      {"source", std::string(experiment.source)},
      {"command", record.command},
      {"program", fmt::format("penstock {} ({}), {}", record.version, record.commit, record.date)},
      {"machine", machine_text(record.machine)},
      {"limits", limits_text(record.limits)},
      {"costs", costs_text(record.limits)},
  };
  if (had_uncommitted_changes(record))
    lines.emplace_back("warning",
                       "the program had uncommitted changes, so nobody can build it again: to be measured again");
  for (const std::string& text : record.left_out) lines.emplace_back("left out", text);
  for (const std::string& text : record.errors) lines.emplace_back("error", text);
  if (!record.complete) lines.emplace_back("incomplete", format_count(record.points.size(), "point"));
  const bool markdown = style == Style::markdown;
  std::string text =
      fmt::format("{}{}: {}\n{}", markdown ? "## " : "", experiment.name, experiment.summary, markdown ? "\n" : "");
  if (markdown) text += differences_table(experiment.differences(), record) + '\n';
  for (const auto& [what, line] : lines) {
    if (line.empty()) continue;
    text += markdown ? fmt::format("- {}: {}\n", what, printable(line))
                     : report::wrapped(printable(line), fmt::format("  {:<10}  ", what), std::string(14, ' '));
  }
  return text;
}

}  // namespace penstock::experiments
