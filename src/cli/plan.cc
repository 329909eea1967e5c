// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "cli/plan.h"

#include <fmt/format.h>

#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/cpu_list.h"
#include "cli/chain_arguments.h"
#include "packet/batch.h"
#include "plan/device_plan.h"
#include "plan/transfer_plan.h"
#include "report/text_table.h"
#include "ring/lane.h"
#include "run/placement.h"

namespace penstock::cli {

namespace {

using plan::TransferPlan;

struct PlanArguments {
  ChainArguments chain;
  std::vector<std::uint32_t> sizes{64, 512, 1518};
  bool json = false;
};

/// The function's name in this chain: "firewall#2 (finish)".
std::string stage_name(const run::Chain& chain, const plan::PlannedStage& stage) {
  return chain.functions[stage.function].name + (stage.finish ? " (finish)" : "");
}

/// All fields of the crossings in one direction.
FieldSet fields_of(std::span<const plan::Crossing> crossings, bool to_device) {
  FieldSet fields;
  for (const plan::Crossing& crossing : crossings) {
    if (is_device(crossing.to) == to_device) fields |= crossing.fields;
  }
  return fields;
}

/// Their bytes in frames of these sizes: "12 / 12 / 12"
std::string bytes_text(FieldSet fields, const std::vector<std::uint32_t>& sizes) {
  std::string text;
  for (const std::uint32_t size : sizes)
    text += fmt::format("{}{}", text.empty() ? "" : " / ", plan::bytes_of(fields, size));
  return text;
}

/// Headings between the stages: "fork: in_port lan" where an arm begins, "join" where a fork ends.
class ForkHeadings {
 public:
  explicit ForkHeadings(const std::vector<plan::Fork>& forks) : forks_(forks) {}

  /// Calls `heading` for each arm that begins and each fork that ends before or at `function`.
  template <typename Heading>
  void before(std::size_t function, Heading heading) {
    for (; fork_ < forks_.size(); ++fork_, arm_ = 0) {
      const plan::Fork& fork = forks_[fork_];
      if (function < fork.first) return;
      for (; arm_ < fork.arms.size(); ++arm_) {
        const plan::Arm& arm = fork.arms[arm_];
        const bool empty = arm.first == arm.last;
        if (function < arm.first || (empty && function < arm.last)) return;
        heading(fmt::format("fork: {}{}", arm.text, empty ? ": straight on" : ""));
      }
      if (function < fork.last) return;
      heading("join");
    }
  }
  [[nodiscard]] bool inside() const { return fork_ < forks_.size() && arm_ > 0; }

 private:
  const std::vector<plan::Fork>& forks_;
  std::size_t fork_ = 0;
  std::size_t arm_ = 0;
};

void print_plan(const TransferPlan& plan, const run::Chain& chain, const std::vector<std::uint32_t>& sizes) {
  report::TextTable stages({"stage", "processor"});
  ForkHeadings headings(chain.forks);
  const auto add_heading = [&](const std::string& text) { stages.add_row({text, ""}); };
  for (const auto& s : plan.stages) {
    headings.before(s.function, add_heading);
    stages.add_row({(headings.inside() ? "  " : "") + stage_name(chain, s), std::string(name(s.processor))});
    stages.add_note("reads " + to_string(s.access.reads));
    stages.add_note("writes " + to_string(s.access.writes));
  }
  headings.before(chain.functions.size(), add_heading);
  fmt::print("{}\n", stages.text());
  std::string heading = ">bytes per packet (" + fmt::format("{}", fmt::join(sizes, " / ")) + "-byte frames)";
  report::TextTable crossings({"what crosses PCIe", "direction", heading});
  const auto add = [&](const std::string& when, std::span<const plan::Crossing> those) {
    for (const bool to_device : {true, false}) {
      const FieldSet fields = fields_of(those, to_device);
      if (fields.empty()) continue;
      crossings.add_row({when, to_device ? "to device" : "to host", bytes_text(fields, sizes)});
      crossings.add_note(to_string(fields));
    }
  };
  for (const auto& s : plan.stages) {
    const std::string name = stage_name(chain, s);
    add("before " + name, s.before);
    add("after " + name + (arm_of(chain.forks, s.function) ? ", where the arm ends" : ", where the chain forks"),
        s.after);
  }
  add("at the end", plan.at_end);
  const std::vector<plan::Crossing> all = plan.crossings();
  add("total", all);
  if (all.empty()) {
    fmt::print("Nothing crosses PCIe.\n");
  } else {
    fmt::print(
        "{}\nThe transfer plan: the fields that stages need on the other side of PCIe. Bytes are the sum of these\n"
        "fields' own sizes, for an Ethernet frame (without FCS) with IPv4 and TCP headers; metadata (such as\n"
        "wire_length, in_port) included. The total counts each field once.\n",
        crossings.text());
  }
}

nlohmann::ordered_json fields_json(FieldSet fields, const std::vector<std::uint32_t>& sizes) {
  nlohmann::ordered_json json{{"fields", nlohmann::json::array()}, {"bytes", nlohmann::ordered_json::object()}};
  for (unsigned f = 0; f < kFieldCount; ++f) {
    if (fields.has(static_cast<Field>(f))) json["fields"].push_back(name(static_cast<Field>(f)));
  }
  for (const std::uint32_t size : sizes) json["bytes"][std::to_string(size)] = plan::bytes_of(fields, size);
  return json;
}

/// "firewall, router"
std::string functions_of(const run::Chain& chain, const plan::DevicePlan::Run& run) {
  std::string text;
  for (std::size_t f = run.first; f < run.last; ++f) text += (text.empty() ? "" : ", ") + chain.functions[f].name;
  return text;
}

/// The functions' shares of the GPU, by their names; without functions that may fill the whole GPU.
nlohmann::ordered_json shares_of(const run::Chain& chain, const plan::DevicePlan::Run& run) {
  const plan::GpuShares& shares = chain.settings.gpu_shares;
  auto json = nlohmann::ordered_json::object();
  for (std::size_t f = run.first; f < run.last; ++f) {
    const run::NamedFunction& named = chain.functions[f];
    if (shares.of(f) != 0) json[named.name] = shares.of(f);
    if (shares.choice == plan::GpuShares::Choice::automatic && named.function->traits().fills_gpu)
      json[named.name] = "auto";
  }
  return json;
}

/// "nids 66, ipsec auto"
std::string shares_text(const nlohmann::ordered_json& shares) {
  std::string text;
  for (const auto& [name, share] : shares.items()) {
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", name,
                        share.is_string() ? share.get<std::string>() : share.dump());
  }
  return text;
}

constexpr std::size_t kMostPaths = 32;  // that are shown

/// "in_port lan, then otherwise"; "all functions" without forks.
std::string path_text(const run::Chain& chain, const plan::Path& path) {
  std::string text;
  for (std::size_t f = 0; f < path.size(); ++f) {
    const bool none = path[f] == plan::Fork::kNoArm;
    text += (f == 0 ? "" : ", then ") + (none ? std::string("no arm") : chain.forks[f].arms[path[f]].text);
  }
  return text.empty() ? "all functions" : text;
}

/// What crosses in the form that the ring uses: see plan/device_plan.h.
void print_device_plan(const run::Chain& chain, const plan::DevicePlan& plan, const std::vector<std::uint32_t>& sizes) {
  report::TextTable table({"runs", "on"});
  for (const plan::DevicePlan::Run& run : plan.runs) {
    table.add_row({functions_of(chain, run), std::string(name(run.processor))});
    if (run.arm) table.add_note("for packets of the arm: " + chain.forks[run.arm->fork].arms[run.arm->arm].text);
    if (!is_device(run.processor)) continue;
    if (const auto shares = shares_of(chain, run); !shares.empty())
      table.add_note("multiprocessors: " + shares_text(shares));
    table.add_note("crosses before: " + plan::describe_up(plan.segments[run.segment]));
    table.add_note("crosses after: " + plan::describe_down(plan.segments[run.segment]));
  }
  report::TextTable bytes({">frame", ">bytes to device", ">bytes to host", "on the path"});
  for (const plan::Path& path : plan::paths_of(chain.forks, kMostPaths)) {
    for (const std::uint32_t size : sizes) {
      const plan::CrossingBytes crossing = plan::crossing_bytes(plan, size, path);
      bytes.add_row({std::to_string(size), std::to_string(crossing.to_device), std::to_string(crossing.to_host),
                     path_text(chain, path)});
    }
  }
  fmt::print(
      "\nTransferred with frames: {} and sharing: {}, for each forwarded packet:\n{}\n{}\n"
      "These are the bytes that a run counts: frames rounded up to {} bytes, or headers or records; to\n"
      "the device an index of {} bytes per packet in place of the metadata; to the host verdicts, lengths\n"
      "and findings. They can be fewer than the sum of the fields: what the device knows (the verdict of a\n"
      "packet that nothing has decided about) or computes (the flow hash) does not cross.\n",
      chain.settings.whole_frames == plan::WholeFrames::always ? "whole" : "planned",
      plan::kSharingNames[static_cast<std::size_t>(chain.settings.sharing)], table.text(), bytes.text(),
      kFrameAlignment, ring::kIndexBytes);
}

/// What the choice of processors for single functions costs, compared with a chain in which all functions that can run
/// on the device do.
struct Cost {
  std::vector<std::string> on_cpu;  // functions that could run on the device
  plan::DevicePlan all_on_device;
};

std::optional<Cost> cost_of(const run::Chain& chain) {
  const plan::Processors processors = chain.processors();
  const plan::Processors all = plan::prefer(chain.settings.processor, chain.traits());
  Cost cost;
  for (std::size_t f = 0; f < all.size(); ++f) {
    if (processors[f] != all[f]) cost.on_cpu.push_back(chain.functions[f].name);
  }
  const run::RunSettings& settings = chain.settings;
  auto plan = plan::plan_device(chain.traits(), all, settings.whole_frames, settings.sharing, chain.forks);
  if (cost.on_cpu.empty() || !plan) return std::nullopt;
  cost.all_on_device = std::move(*plan);
  return cost;
}

std::int64_t difference(std::size_t value, std::size_t from) {
  return static_cast<std::int64_t>(value) - static_cast<std::int64_t>(from);
}

void print_cost(const run::Chain& chain, const plan::DevicePlan& plan, const Cost& cost,
                const std::vector<std::uint32_t>& sizes) {
  report::TextTable table({">frame", ">bytes to device", ">bytes to host", ">round trips", "on the path"});
  const auto compared = [](std::size_t value, std::size_t from) {
    return fmt::format("{} ({:+})", value, difference(value, from));
  };
  for (const plan::Path& path : plan::paths_of(chain.forks, kMostPaths)) {
    for (const std::uint32_t size : sizes) {
      const plan::CrossingBytes here = plan::crossing_bytes(plan, size, path);
      const plan::CrossingBytes there = plan::crossing_bytes(cost.all_on_device, size, path);
      table.add_row({std::to_string(size), compared(here.to_device, there.to_device),
                     compared(here.to_host, there.to_host),
                     compared(plan::round_trips(plan, path), plan::round_trips(cost.all_on_device, path)),
                     path_text(chain, path)});
    }
  }
  fmt::print(
      "\nThe cost of `processor: cpu` for {}\n"
      "(in brackets: the difference from the same chain without it), for each forwarded packet:\n{}",
      fmt::join(cost.on_cpu, ", "), table.text());
}

nlohmann::ordered_json cost_json(const run::Chain& chain, const plan::DevicePlan& plan, const Cost& cost,
                                 const std::vector<std::uint32_t>& sizes) {
  const auto differences = [&](const plan::Path& path) {
    nlohmann::ordered_json json{
        {"round_trips", difference(plan::round_trips(plan, path), plan::round_trips(cost.all_on_device, path))},
        {"bytes", nlohmann::ordered_json::object()}};
    for (const std::uint32_t size : sizes) {
      const plan::CrossingBytes here = plan::crossing_bytes(plan, size, path);
      const plan::CrossingBytes there = plan::crossing_bytes(cost.all_on_device, size, path);
      json["bytes"][std::to_string(size)] = {{"to_device", difference(here.to_device, there.to_device)},
                                             {"to_host", difference(here.to_host, there.to_host)}};
    }
    return json;
  };
  nlohmann::ordered_json json{{"on_cpu", cost.on_cpu}};
  json.update(differences({}));
  for (const plan::Path& path : chain.forks.empty() ? std::vector<plan::Path>{} : paths_of(chain.forks, kMostPaths)) {
    auto& one = json["paths"].emplace_back(nlohmann::ordered_json{{"arms", path_text(chain, path)}});
    one.update(differences(path));
  }
  return json;
}

nlohmann::ordered_json device_plan_json(const run::Chain& chain, const plan::DevicePlan& plan,
                                        const std::vector<std::uint32_t>& sizes) {
  nlohmann::ordered_json json{{"runs", nlohmann::json::array()}, {"bytes", nlohmann::ordered_json::object()}};
  for (const plan::DevicePlan::Run& run : plan.runs) {
    nlohmann::ordered_json one{{"functions", functions_of(chain, run)},
                               {"processor", std::string(name(run.processor))}};
    if (is_device(run.processor)) {
      if (auto shares = shares_of(chain, run); !shares.empty()) one["multiprocessors"] = std::move(shares);
      one["before"] = plan::describe_up(plan.segments[run.segment]);
      one["after"] = plan::describe_down(plan.segments[run.segment]);
    }
    if (run.arm) one["arm"] = chain.forks[run.arm->fork].arms[run.arm->arm].text;
    json["runs"].push_back(std::move(one));
  }
  for (const std::uint32_t size : sizes) {
    const plan::CrossingBytes crossing = plan::crossing_bytes(plan, size);
    json["bytes"][std::to_string(size)] = {{"to_device", crossing.to_device}, {"to_host", crossing.to_host}};
  }
  for (const plan::Path& path : chain.forks.empty() ? std::vector<plan::Path>{} : paths_of(chain.forks, kMostPaths)) {
    auto& one = json["paths"].emplace_back(nlohmann::ordered_json{{"arms", path_text(chain, path)}});
    for (const std::uint32_t size : sizes) {
      const plan::CrossingBytes crossing = plan::crossing_bytes(plan, size, path);
      one["bytes"][std::to_string(size)] = {{"to_device", crossing.to_device}, {"to_host", crossing.to_host}};
    }
  }
  return json;
}

/// Where the memory of a worker would be.
std::string memory_text(const run::WorkerPlace& place) {
  if (place.memory_node) return fmt::format("NUMA node {}", *place.memory_node);
  return place.gpu ? "the GPU's NUMA node" : "where the worker runs";
}

void print_placement(const run::Placement& placement) {
  if (placement.workers.empty()) return;  // not possible on this machine, for reasons that are printed as warnings
  report::TextTable table({">worker", "GPU", "runs on", "memory"});
  for (std::size_t w = 0; w < placement.workers.size(); ++w) {
    const run::WorkerPlace& place = placement.workers[w];
    table.add_row(
        {std::to_string(w), place.gpu ? std::to_string(*place.gpu) : "-", cores_text(place), memory_text(place)});
  }
  fmt::print("\nPlacement on this machine:\n{}", table.text());
  if (!placement.other_cores.empty())
    fmt::print("All other threads run on cores {}.\n", format_cpu_list(placement.other_cores));
  for (const Error& note : placement.notes) fmt::print("note: {}\n", to_string(note));
}

nlohmann::ordered_json placement_json(const run::Placement& placement) {
  nlohmann::ordered_json json{{"workers", nlohmann::json::array()},
                              {"other_cores", format_cpu_list(placement.other_cores)},
                              {"warnings", nlohmann::json::array()},
                              {"notes", nlohmann::json::array()}};
  for (const run::WorkerPlace& place : placement.workers) {
    auto& worker = json["workers"].emplace_back(nlohmann::ordered_json{
        {"cores", format_cpu_list(place.cores)}, {"cores_node", nullptr}, {"gpu", nullptr}, {"memory_node", nullptr}});
    if (place.cores_node) worker["cores_node"] = *place.cores_node;
    if (place.gpu) worker["gpu"] = *place.gpu;
    if (place.memory_node) worker["memory_node"] = *place.memory_node;
  }
  for (const Error& warning : placement.warnings) json["warnings"].push_back(to_string(warning));
  for (const Error& note : placement.notes) json["notes"].push_back(to_string(note));
  return json;
}

void print_json(const TransferPlan& plan, const run::Chain& chain, const plan::DevicePlan& on_device,
                const std::vector<std::uint32_t>& sizes) {
  nlohmann::ordered_json json{{"stages", nlohmann::json::array()}};
  for (const auto& s : plan.stages) {
    json["stages"].push_back({{"name", stage_name(chain, s)},
                              {"processor", std::string(name(s.processor))},
                              {"reads", fields_json(s.access.reads, sizes)["fields"]},
                              {"writes", fields_json(s.access.writes, sizes)["fields"]},
                              {"to_device", fields_json(fields_of(s.before, true), sizes)},
                              {"to_host", fields_json(fields_of(s.before, false), sizes)}});
    auto& stage = json["stages"].back();
    if (!s.after.empty()) stage["to_host_after"] = fields_json(fields_of(s.after, false), sizes);
    if (const auto arm = arm_of(chain.forks, s.function)) {
      stage["fork"] = arm->fork;
      stage["arm"] = chain.forks[arm->fork].arms[arm->arm].text;
    }
  }
  json["to_host_at_end"] = fields_json(fields_of(plan.at_end, false), sizes);
  if (!on_device.segments.empty()) {
    json["on_the_wire"] = device_plan_json(chain, on_device, sizes);
  }
  if (is_device(chain.settings.processor)) {
    if (const auto cost = cost_of(chain)) json["cost_of_processors"] = cost_json(chain, on_device, *cost, sizes);
  }
  json["placement"] = placement_json(chain.settings.placement);
  fmt::print("{}\n", json.dump(2));
}

int plan_chain(const PlanArguments& arguments) {
  const auto loaded = arguments.chain.load(true);
  if (!loaded) return refuse(loaded.error());
  print_warnings(*loaded);
  const run::RunSettings& settings = loaded->chain.settings;
  const TransferPlan plan =
      plan::plan_transfers(loaded->chain.traits(), loaded->chain.processors(), loaded->chain.forks);
  plan::DevicePlan on_device;
  if (is_device(settings.processor)) {
    auto planned = loaded->chain.device_plan();
    if (!planned) return refuse(planned.error());
    on_device = std::move(*planned);
  }
  if (arguments.json) {
    print_json(plan, loaded->chain, on_device, arguments.sizes);
  } else {
    print_plan(plan, loaded->chain, arguments.sizes);
    if (!on_device.segments.empty()) print_device_plan(loaded->chain, on_device, arguments.sizes);
    if (is_device(settings.processor)) {
      if (const auto cost = cost_of(loaded->chain)) print_cost(loaded->chain, on_device, *cost, arguments.sizes);
    }
    print_placement(settings.placement);
  }
  return kDone;
}

}  // namespace

void add_plan(CLI::App& app, function::NfKinds functions, int& exit_code) {
  auto arguments = std::make_shared<PlanArguments>();
  CLI::App* command = app.add_subcommand(
      "plan", "Show the stages of a chain, the fields they access, what crosses PCIe, and where workers run");
  arguments->chain.add_to(*command, functions);
  arguments->chain
      .add_override(*command, "--processor", "run.processor",
                    "plan for this processor, even if it cannot run the chain")
      ->type_name("auto|cpu|gpu");
  command->add_option("--packet-size", arguments->sizes, "frame sizes, in bytes, to show transfers for")
      ->transform(whole_number(60, 9018))
      ->type_name("BYTES,...")
      ->delimiter(',');
  command->add_flag("--json", arguments->json, "print JSON");
  command->callback([arguments, &exit_code] { exit_code = plan_chain(*arguments); });
}

}  // namespace penstock::cli
