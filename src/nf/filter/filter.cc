// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "nf/filter/filter.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/units.h"
#include "function/changes.h"
#include "gpu/devices.h"
#include "gpu/nvrtc.h"
#include "nf/filter/recipe.h"

namespace penstock::filter {

namespace {

/// Packets that pass keep their verdict, so the verdict is also read; it has the output port.
std::string_view text_of(Action action) { return action.kind == Action::Kind::drop ? "drop" : "forward"; }

bool has(const FilterList& list, Action::Kind kind) {
  return list.otherwise.kind == kind ||
         std::ranges::any_of(list.filters, [&](const NamedFilter& filter) { return filter.action.kind == kind; });
}

/// Whether generated code has been compared with the interpreter on such a device. NVIDIA's assembler has translated it
/// wrongly more than once (code/README.md), so on other devices only users choose it.
bool is_tested(const gpu::Device& device) { return device.compute_major == 9 && device.compute_minor == 0; }

/// Null if there is none.
const NamedFilter* find(const FilterList& list, std::string_view name) {
  const auto found = std::ranges::find(list.filters, name, &NamedFilter::name);
  return found == list.filters.end() ? nullptr : &*found;
}

}  // namespace

Filter::Filter(FilterList list, const FilterOptions& options) : list_(std::move(list)), options_(options) {
  traits_.name = filter_kind().name;
  traits_.summary = filter_kind().summary;
  traits_.cpu = device_access(list_.headers_only);
  traits_.devices = {{function::Processor::gpu, device_access(list_.headers_only)}};
  traits_.finish = Access{{Field::frame_shape}, {}};  // for counting bytes
  traits_.finish_counts = true;
  traits_.findings_bytes = static_cast<std::uint32_t>(options_.most_filters / 8);
  const bool names_ports = has(list_, Action::Kind::to);
  const bool passes = has(list_, Action::Kind::pass);
  traits_.chooses_port = names_ports && !passes;
  traits_.chooses_some_ports = names_ports && passes;
  traits_.drop_reasons = kDropReasons;
  for (std::size_t i = 0; i <= list_.filters.size(); ++i) tallies_.push_back(std::make_shared<Tally>());
}

Result<std::unique_ptr<Filter>> Filter::build(FilterList list, const FilterOptions& options) {
  std::unique_ptr<Filter> filter(new Filter(std::move(list), options));
  for (std::size_t type = 0; type < kLinkTypes; ++type) {
    std::vector<Program> programs = filter->list_.programs(static_cast<LinkType>(type));
    if (programs.empty()) continue;
    auto matcher = make_matcher(options.engine, std::move(programs));
    if (!matcher) return failure(std::move(matcher.error()));
    filter->matchers_[type] = std::move(*matcher);
  }
  return filter;
}

std::unique_ptr<function::CpuStage> Filter::make_cpu_stage() {
  return std::make_unique<FilterStage>(list_, matchers_, tallies_);
}

std::unique_ptr<DeviceStage> Filter::make_device_stage(function::Processor /*processor*/, const StageUse& use) {
  const DeviceTables& tables =
      on_devices_.of_current([&] { return std::make_unique<const DeviceTables>(list_, machine_code()); });
  return make_filter_gpu_stage(tables, traits_.findings_bytes, use.batch_packets);
}

std::optional<function::StageRecipe> Filter::stage_recipe(function::Processor processor) const {
  if (processor != function::Processor::gpu || options_.gpu_engine == GpuEngine::generated) return std::nullopt;
  return recipe_of(list_, traits_.findings_bytes);
}

MachineCode* Filter::machine_code() {
  if (options_.gpu_engine == GpuEngine::interpreter || !list_.takes(LinkType::ethernet)) return nullptr;
  const gpu::Device device = gpu::list_devices().devices.at(static_cast<std::size_t>(gpu::current_device()));
  const bool chosen = options_.gpu_engine == GpuEngine::generated;
  if (!chosen && !(is_tested(device) && gpu::nvrtc_status().available)) return nullptr;
  if (!code_) code_ = std::make_unique<MachineCode>(list_.programs(LinkType::ethernet), GenerateOptions{});
  // Some sets are too large to generate code for. If the user has chosen it, that is an error.
  return chosen || code_->for_devices(device.compute_major, device.compute_minor) ? code_.get() : nullptr;
}

std::unique_ptr<function::FinishStage> Filter::make_finish_stage(function::CpuStage& /*twin*/) {
  return std::make_unique<FilterFinishStage>(list_, matchers_, tallies_);
}

Result<std::string> Filter::changes_from(const function::NetworkFunction& running) const {
  const FilterList& before = static_cast<const Filter&>(running).list_;
  function::Changes changes;
  function::Changes::Counts counts;
  std::vector<std::ptrdiff_t> order;
  for (const NamedFilter& filter : list_.filters) {
    const NamedFilter* same = find(before, filter.name);
    if (same == nullptr) {
      ++counts.added;
      continue;
    }
    if (!same_filter(*same, filter)) ++counts.changed;
    order.push_back(same - before.filters.data());
  }
  counts.removed = before.filters.size() - order.size();
  changes.count("filter", counts);
  if (!std::ranges::is_sorted(order)) changes.add("filters in another order");
  changes.value("otherwise", text_of(before.otherwise), text_of(list_.otherwise));
  changes.value("sees", before.headers_only ? "headers" : "frame", list_.headers_only ? "headers" : "frame");
  const FilterOptions& options = static_cast<const Filter&>(running).options_;
  changes.value("engine", name(options.engine), name(options_.engine));
  changes.value("gpu_engine", name(options.gpu_engine), name(options_.gpu_engine));
  return changes.text();
}

Result<void> Filter::take_over(function::NetworkFunction& predecessor) {
  auto& before = static_cast<Filter&>(predecessor);
  for (std::size_t i = 0; i < list_.filters.size(); ++i) {
    const NamedFilter* same = find(before.list_, list_.filters[i].name);
    if (same == nullptr || !same_filter(*same, list_.filters[i])) continue;
    tallies_[i] = before.tallies_[static_cast<std::size_t>(same - before.list_.filters.data())];
  }
  tallies_.back() = before.tallies_.back();
  predecessor_ = &before;
  return {};
}

void Filter::predecessor_ended() noexcept {
  if (Filter* const before = std::exchange(predecessor_, nullptr)) before->on_devices_.clear();
}

std::optional<function::Explanation> Filter::explain(PacketView packet) const {
  function::Explanation explanation;
  Verdict& verdict = packet.packet->verdict;
  const Matcher* const matcher = matchers_[static_cast<std::size_t>(packet.packet->link_type)].get();
  if (matcher == nullptr) {
    verdict = Verdict::drop(DropReason::link_type);
    explanation.decided_by = "no program for the link type of this frame";
    return explanation;
  }
  const PacketBytes bytes = bytes_of(packet, list_.headers_only);
  const NamedFilter* decides = nullptr;
  for (std::size_t f = 0; f < list_.filters.size(); ++f) {
    const NamedFilter& filter = list_.filters[f];
    std::uint32_t returned = 0;
    matcher->run(f, {&bytes, 1}, &returned);
    const std::string what = fmt::format("filter {} ({}): {}", filter.name, filter.text, filter.action_text);
    if (decides != nullptr) {
      if (returned != 0 && explanation.notes.size() < function::Explanation::kMostListed)
        explanation.notes.push_back("also matches " + what);
    } else if (returned != 0) {
      decides = &filter;
      explanation.decided_by = what;
    } else if (explanation.passed_over.size() < function::Explanation::kMostListed) {
      explanation.passed_over.push_back({what, "does not match"});
    } else {
      ++explanation.not_listed;
    }
  }
  if (decides == nullptr) explanation.decided_by = fmt::format("no filter matches: {}", text_of(list_.otherwise));
  if (list_.headers_only) explanation.notes.emplace_back("the programs see headers only");
  verdict = verdict_of(decides == nullptr ? list_.otherwise : decides->action, verdict);
  return explanation;
}

std::string Filter::description() const {
  std::size_t instructions = 0;
  for (const NamedFilter& filter : list_.filters) instructions += filter.instructions();
  std::string text =
      fmt::format("{}, {}, {}; otherwise {}", format_count(list_.filters.size(), "filter"),
                  format_count(instructions, "instruction"), name(options_.engine), text_of(list_.otherwise));
  if (list_.headers_only) text += "; sees headers only";
  return text;
}

std::string Filter::load_table() const {
  std::string text;
  constexpr std::size_t kMost = 20;
  for (std::size_t i = 0; i < std::min(list_.filters.size(), kMost); ++i) {
    const NamedFilter& filter = list_.filters[i];
    text += fmt::format("  {}: {} ({}): {}\n", filter.name, printable(filter.text),
                        format_count(filter.instructions(), "instruction"), filter.action_text);
  }
  if (list_.filters.size() > kMost) text += fmt::format("  … and {} more\n", list_.filters.size() - kMost);
  return text;
}

std::vector<Count> Filter::counts() const {
  std::vector<Count> counts;
  for (const auto& tally : tallies_) counts.push_back(tally->sum());
  return counts;
}

void Filter::report(nlohmann::json& into) const {
  const std::vector<Count> sums = counts();
  nlohmann::json& filters = into["filters"] = nlohmann::json::array();
  for (std::size_t i = 0; i < list_.filters.size(); ++i) {
    const NamedFilter& filter = list_.filters[i];
    filters.push_back({{"name", filter.name},
                       {filter.is_expression ? "expression" : "program", filter.text},
                       {"match", filter.action_text},
                       {"packets", sums[i].packets},
                       {"bytes", sums[i].bytes},
                       {"decided", {{"packets", sums[i].decided_packets}, {"bytes", sums[i].decided_bytes}}}});
  }
  into["unmatched"] = {{"packets", sums.back().packets}, {"bytes", sums.back().bytes}};
}

}  // namespace penstock::filter
