// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "nf/nids/match/automaton_recipe.h"

#include <algorithm>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "function/recipe_tables.h"
#include "nf/nids/match/device_literals.h"

namespace penstock::nids {

namespace {

using function::refused;
using function::StageRecipe;

constexpr std::string_view kKernel = "nids_automaton";

/// How many outputs, and bytes of their texts, may be visited at one byte of a packet. A packet of 1,500 bytes then
/// takes some hundredths of a second, where each has to be fetched from the device's memory.
constexpr std::uint64_t kMostSteps = 4096;

struct Arguments {
  std::uint32_t classes, states, longest;
};

template <typename Spans, typename Use>
void each_array(Spans& spans, Use& use) {
  use(spans.class_of);
  use(spans.narrow);
  use(spans.wide);
  use(spans.accepting);
  use(spans.outputs);
  use(spans.texts);
}

/// What it takes to report at an accepting state, with the outputs of all its suffixes.
struct Report {
  std::uint64_t steps = 0;
  std::uint32_t longest = 0;  // that is compared with the bytes before the state's end
};

/// Those of all accepting states. Nothing if one leads out of the tables, or into a circle, or takes too long.
std::optional<std::vector<Report>> reports_of(const AutomatonSpans& automaton) {
  enum class Seen : std::uint8_t { no, on_way, done };
  std::vector<Seen> seen(automaton.accepting.size());
  std::vector<Report> reports(automaton.accepting.size());
  std::vector<std::uint32_t> way;
  for (std::uint32_t from = 0; from < automaton.accepting.size(); ++from) {
    std::uint32_t at = from;
    while (at != AcAccepting::kNone && seen[at] != Seen::done) {
      if (seen[at] == Seen::on_way) return std::nullopt;
      seen[at] = Seen::on_way;
      way.push_back(at);
      at = automaton.accepting[at].suffix;
      if (at != AcAccepting::kNone && at >= automaton.accepting.size()) return std::nullopt;
    }
    for (; !way.empty(); way.pop_back()) {
      const std::uint32_t state = way.back();
      const AcAccepting accepting = automaton.accepting[state];
      Report report = accepting.suffix == AcAccepting::kNone ? Report{} : reports[accepting.suffix];
      // States may share outputs, so that the limit also bounds this loop.
      if (std::uint64_t{accepting.first} + accepting.count > automaton.outputs.size()) return std::nullopt;
      report.steps += 1 + std::uint64_t{accepting.count};
      if (report.steps > kMostSteps) return std::nullopt;
      for (const AcOutput& output : automaton.outputs.subspan(accepting.first, accepting.count)) {
        if (output.bytes == AcOutput::kExact) continue;
        if (std::uint64_t{output.bytes} + output.length > automaton.texts.size()) return std::nullopt;
        report.steps += output.length;
        report.longest = std::max(report.longest, output.length);
      }
      if (report.steps > kMostSteps) return std::nullopt;
      reports[state] = report;
      seen[state] = Seen::done;
    }
  }
  return reports;
}

/// The fewest bytes that lead to each state; kNever: none do.
constexpr std::uint32_t kNever = std::numeric_limits<std::uint32_t>::max();
template <typename Entry>
std::vector<std::uint32_t> depths_of(std::span<const Entry> rows, const AutomatonSpans& automaton) {
  std::vector<std::uint32_t> depths(automaton.states, kNever);
  std::vector<std::uint32_t> reached{0};
  depths[0] = 0;
  for (std::size_t i = 0; i < reached.size(); ++i) {
    const std::uint32_t state = reached[i];
    for (const Entry next : rows.subspan(std::size_t{state} * automaton.classes, automaton.classes)) {
      if (depths[next] != kNever) continue;
      depths[next] = depths[state] + 1;
      reached.push_back(next);
    }
  }
  return depths;
}

template <typename Entry>
Result<void> check_rows(const StageRecipe& recipe, std::span<const Entry> rows, const AutomatonSpans& automaton) {
  const std::uint64_t entries = std::uint64_t{automaton.states} * automaton.classes;
  if (entries != rows.size() || entries > std::numeric_limits<std::uint32_t>::max() || entries == 0 ||
      automaton.accepting.size() > automaton.states) {
    return refused(recipe, "number of states", std::to_string(automaton.states));
  }
  if (!std::ranges::all_of(rows, [&](Entry next) { return next < automaton.states; }))
    return refused(recipe, "a state has a successor that does not exist");
  const auto reports = reports_of(automaton);
  if (!reports) return refused(recipe, "a state's literals lie outside the tables, or take too long");
  // A literal is compared with the bytes before the place where its state is reached: a packet must have so many.
  const std::vector<std::uint32_t> depths = depths_of(rows, automaton);
  const std::size_t first_accepting = automaton.states - automaton.accepting.size();
  for (std::size_t i = 0; i < reports->size(); ++i) {
    if ((*reports)[i].longest > depths[first_accepting + i])
      return refused(recipe, "a literal is longer than the way to its state");
  }
  return {};
}

class LoadedAutomaton final : public function::LoadedTables {
 public:
  explicit LoadedAutomaton(const AutomatonSpans& automaton) : literals_(automaton), bytes_(automaton.bytes()) {}
  std::unique_ptr<DeviceStage> make_stage(const StageUse& use) override {
    return make_scan_stage(literals_, use.multiprocessors);
  }
  std::size_t bytes() const noexcept override { return bytes_; }

 private:
  const DeviceLiterals literals_;
  const std::size_t bytes_;
};

std::unique_ptr<function::LoadedTables> load(const StageRecipe& recipe) {
  return std::make_unique<LoadedAutomaton>(*read_recipe(recipe));
}

function::StageNeeds needs(const StageRecipe& /*recipe*/) {
  return {scan_access(), sizeof(PacketLiterals), 0, {}, /*chooses_port=*/false};
}

}  // namespace

Access scan_access() noexcept {
  // The device only searches for literals, in the bytes that the layout gives.
  return {FieldSet::all() - FieldSet{Field::mark, Field::flow_hash, Field::verdict, Field::timestamp, Field::in_port},
          {}};
}

AutomatonSpans spans_of(const AhoCorasickTables& tables) {
  return {tables.class_of, tables.narrow,  tables.wide,   tables.accepting, tables.outputs,
          tables.texts,    tables.classes, tables.states, tables.longest};
}

StageRecipe recipe_of(const AutomatonSpans& automaton) {
  StageRecipe recipe{std::string(kKernel),
                     function::bytes_of_arguments(Arguments{automaton.classes, automaton.states, automaton.longest}),
                     {}};
  function::TableWriter write_table(recipe);
  each_array(automaton, write_table);
  return recipe;
}

Result<AutomatonSpans> read_recipe(const StageRecipe& recipe) {
  const auto arguments = function::read_arguments<Arguments>(recipe);
  if (!arguments) return tl::unexpected(arguments.error());
  AutomatonSpans automaton;
  automaton.classes = arguments->classes;
  automaton.states = arguments->states;
  automaton.longest = arguments->longest;
  function::TableReader read_table(recipe);
  each_array(automaton, read_table);
  if (auto whole = read_table.end(); !whole) return tl::unexpected(whole.error());
  return automaton;
}

Result<void> check_recipe(const StageRecipe& recipe) {
  const auto automaton = read_recipe(recipe);
  if (!automaton) return tl::unexpected(automaton.error());
  const bool good = automaton->class_of.size() == 256 &&
                    std::ranges::all_of(automaton->class_of, [&](std::uint8_t c) { return c < automaton->classes; });
  if (!good) return refused(recipe, "classes of bytes");
  if (automaton->is_narrow()) return check_rows(recipe, automaton->narrow, *automaton);
  return check_rows(recipe, automaton->wide, *automaton);
}

function::RemoteKernel remote_kernel() noexcept { return {kKernel, check_recipe, load, needs}; }

}  // namespace penstock::nids
