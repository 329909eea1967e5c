// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "nf/filter/recipe.h"

#include <algorithm>
#include <iterator>
#include <string>
#include <utility>

#include "function/recipe_tables.h"
#include "nf/filter/bpf/opcodes.h"
#include "nf/filter/device_tables.h"

namespace penstock::filter {

namespace {

using function::refused;
using function::StageRecipe;

constexpr std::string_view kKernel = "filter";

/// How many instructions all programs for a packet may run. Where each waits for a byte of the packet, that takes less
/// than a second.
constexpr std::uint64_t kMostSteps = std::uint64_t{1} << 20;

struct Arguments {
  std::uint32_t count, findings_bytes;
  std::uint32_t otherwise;  // as word_of
  std::uint8_t headers_only;
  std::uint8_t takes;  // a bit for each link type
  std::uint8_t reserved[2];
};
static_assert(kLinkTypes <= 8);

std::uint32_t word_of(Action action) noexcept {
  return static_cast<std::uint32_t>(action.kind) | std::uint32_t{action.port} << 16;
}
Action action_of(std::uint32_t word) noexcept {
  return {static_cast<Action::Kind>(word & 0xff), static_cast<PortIndex>(word >> 16)};
}

bool is_jump(std::uint16_t code) noexcept {
  constexpr std::uint16_t kClass = 7;
  return (code & kClass) == kJump;  // the class's number
}
bool is_return(std::uint16_t code) noexcept { return code == kReturnK || code == kReturnA; }

/// Whether the interpreter can run the instruction by itself. It ends at those that it does not know.
bool is_sound(const Instruction& instruction) noexcept {
  switch (instruction.code) {
    case kLoadScratch:
    case kLoadXScratch:
    case kStore:
    case kStoreX: return instruction.k < kScratchWords;
    case kDivideK:
    case kModuloK: return instruction.k != 0;
    case kShiftLeftK:
    case kShiftRightK: return instruction.k < 32;
    default: return true;
  }
}

/// How many instructions a program runs at most, by the instruction at which it begins. Empty if one is not sound, or
/// leads beyond the end. All jumps go forwards.
std::vector<std::uint32_t> longest_ways(std::span<const Instruction> program) {
  std::vector<std::uint32_t> steps(program.size());
  for (std::size_t i = program.size(); i-- > 0;) {
    const Instruction& instruction = program[i];
    if (!is_sound(instruction)) return {};
    if (is_return(instruction.code)) {
      steps[i] = 1;
      continue;
    }
    std::uint64_t first = 0, second = 0;
    if (instruction.code == kJump) {
      first = second = instruction.k;
    } else if (is_jump(instruction.code)) {
      first = instruction.jump_true;
      second = instruction.jump_false;
    }
    if (i + 1 + std::max(first, second) >= program.size()) return {};
    steps[i] = 1 + std::max(steps[i + 1 + first], steps[i + 1 + second]);
  }
  return steps;
}

Result<void> check_programs(const StageRecipe& recipe, const RecipeParts& parts) {
  const FilterView& view = parts.tables;
  const std::vector<std::uint32_t> ways = longest_ways({view.instructions, parts.instructions});
  if (ways.size() != parts.instructions) return refused(recipe, "an instruction leaves its program or its memory");
  for (std::size_t type = 0; type < kLinkTypes; ++type) {
    if (!view.takes[type]) continue;
    std::uint64_t steps = 0;
    for (std::size_t i = 0; i < view.count; ++i) {
      const std::uint32_t start = view.starts[type * view.count + i];
      if (start >= parts.instructions) return refused(recipe, "a program begins beyond the instructions");
      steps += ways[start];
    }
    if (steps > kMostSteps) {
      return refused(recipe, "programs take too long", std::to_string(steps) + " instructions",
                     "at most " + std::to_string(kMostSteps));
    }
  }
  return {};
}

class LoadedFilter final : public function::LoadedTables {
 public:
  explicit LoadedFilter(const RecipeParts& parts)
      : tables_(parts.view(), parts.instructions),
        findings_bytes_(parts.findings_bytes),
        bytes_(parts.instructions * sizeof(Instruction) +
               parts.actions.size() * (kLinkTypes * sizeof(std::uint32_t) + sizeof(Action))) {}
  std::unique_ptr<DeviceStage> make_stage(const StageUse& use) override {
    return make_filter_gpu_stage(tables_, findings_bytes_, use.batch_packets);
  }
  std::size_t bytes() const noexcept override { return bytes_; }

 private:
  const DeviceTables tables_;
  const std::uint32_t findings_bytes_;
  const std::size_t bytes_;
};

std::unique_ptr<function::LoadedTables> load(const StageRecipe& recipe) {
  return std::make_unique<LoadedFilter>(*read_recipe(recipe));
}

function::StageNeeds needs(const StageRecipe& recipe) {
  const auto parts = read_recipe(recipe);
  const auto chooses = [](Action action) { return action.kind == Action::Kind::to; };
  return {device_access(parts->tables.headers_only),
          parts->findings_bytes,
          0,
          {},
          chooses(parts->tables.otherwise) || std::ranges::any_of(parts->actions, chooses)};
}

}  // namespace

Access device_access(bool headers_only) noexcept {
  FieldSet reads = FieldSet::all() - FieldSet{Field::timestamp, Field::in_port, Field::mark, Field::flow_hash};
  if (headers_only) reads -= FieldSet{Field::payload, Field::trailer};
  return {reads, {Field::verdict}};
}

StageRecipe recipe_of(const FilterList& list, std::uint32_t findings_bytes) {
  const FilterTables tables(list);
  Arguments arguments{static_cast<std::uint32_t>(list.filters.size()),
                      findings_bytes,
                      word_of(list.otherwise),
                      list.headers_only,
                      0,
                      {}};
  for (std::size_t type = 0; type < kLinkTypes; ++type) {
    if (list.takes(static_cast<LinkType>(type))) arguments.takes |= static_cast<std::uint8_t>(1U << type);
  }
  std::vector<std::uint32_t> actions;
  std::ranges::transform(tables.actions, std::back_inserter(actions), word_of);
  StageRecipe recipe{std::string(kKernel), function::bytes_of_arguments(arguments), {}};
  function::TableWriter write_table(recipe);
  write_table(std::span(tables.instructions));
  write_table(std::span(tables.starts));
  write_table(std::span(std::as_const(actions)));
  return recipe;
}

Result<RecipeParts> read_recipe(const StageRecipe& recipe) {
  const auto arguments = function::read_arguments<Arguments>(recipe);
  if (!arguments) return tl::unexpected(arguments.error());
  std::span<const Instruction> instructions;
  std::span<const std::uint32_t> starts, actions;
  function::TableReader read_table(recipe);
  read_table(instructions);
  read_table(starts);
  read_table(actions);
  if (auto whole = read_table.end(); !whole) return tl::unexpected(whole.error());
  const std::size_t count = arguments->count;
  if (count > kMostFilters || actions.size() != count || starts.size() != kLinkTypes * count)
    return refused(recipe, "number of filters", std::to_string(count));
  RecipeParts parts{{}, instructions.size(), {}, arguments->findings_bytes};
  parts.tables.instructions = instructions.data();
  parts.tables.starts = starts.data();
  parts.tables.count = arguments->count;
  parts.tables.otherwise = action_of(arguments->otherwise);
  parts.tables.headers_only = arguments->headers_only != 0;
  for (std::size_t type = 0; type < kLinkTypes; ++type) parts.tables.takes[type] = (arguments->takes >> type & 1) != 0;
  std::ranges::transform(actions, std::back_inserter(parts.actions), action_of);
  return parts;
}

Result<void> check_recipe(const StageRecipe& recipe) {
  const auto parts = read_recipe(recipe);
  if (!parts) return tl::unexpected(parts.error());
  const std::uint64_t bitmap = std::uint64_t{(parts->tables.count + 31) / 32} * sizeof(std::uint32_t);
  if (parts->findings_bytes < bitmap || parts->findings_bytes > kMostFilters / 8 ||
      parts->findings_bytes % sizeof(std::uint32_t) != 0) {
    return refused(recipe, "findings of each packet", std::to_string(parts->findings_bytes) + " bytes",
                   std::to_string(bitmap));
  }
  return check_programs(recipe, *parts);
}

function::RemoteKernel remote_kernel() noexcept { return {kKernel, check_recipe, load, needs}; }

}  // namespace penstock::filter
