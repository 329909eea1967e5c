// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "nf/nids/match/filter_recipe.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "function/recipe_tables.h"
#include "nf/nids/match/automaton_recipe.h"
#include "nf/nids/match/device_literals.h"
#include "nf/nids/match/flow_state.h"
#include "nf/nids/match/packet_literals.h"

namespace penstock::nids {

namespace {

using function::refused;
using function::StageRecipe;

constexpr std::string_view kKernel = "nids_filter";

/// How many slots, entries and bytes of them may be visited at one position of a packet, as with the automaton.
constexpr std::uint32_t kMostSteps = 4096;

/// The bits fit into the shared memory of any device, beside the queues of the warps.
constexpr std::size_t kFewestBitWords = std::size_t{1} << 5;
constexpr std::size_t kMostBitWords = std::size_t{1} << 14;

/// Literals have at most so many bytes.
constexpr std::uint32_t kMostLiteralBytes = std::numeric_limits<std::uint16_t>::max();

struct Arguments {
  std::uint32_t before, after;
  std::uint8_t folds, pairs, with_states;
  std::uint8_t reserved;
};

template <typename Spans, typename Use>
void each_array(Spans& filter, Use& use) {
  use(filter.quad_bits);
  use(filter.pair_bits);
  use(filter.key_bits);
  use(filter.quad_slots);
  use(filter.pair_slots);
  use(filter.entries);
  use(filter.rests);
}

bool is_size_of_bits(std::size_t words) noexcept {
  return std::has_single_bit(words) && words >= kFewestBitWords && words <= kMostBitWords;
}

/// How many steps it takes from each entry to the last of its list, or more than kMostSteps. Empty if an entry leads
/// out of the tables.
std::vector<std::uint32_t> steps_of(const FilterSpans& filter) {
  std::vector<std::uint32_t> steps(filter.entries.size());
  constexpr std::uint32_t kInEntry = sizeof(FilterEntry::bytes);
  for (std::size_t i = steps.size(); i-- > 0;) {
    const FilterEntry& entry = filter.entries[i];
    const bool ends = entry.last != 0;
    const std::uint32_t rest = entry.length > kInEntry ? entry.length - kInEntry : 0;
    if (rest != 0 && std::uint64_t{entry.rest} + rest > filter.rests.size()) return {};
    if (entry.literal == PacketLiterals::kNone || (!ends && i + 1 == steps.size())) return {};
    steps[i] = std::min(kMostSteps + 1, 1 + rest + (ends ? 0 : steps[i + 1]));
  }
  return steps;
}

/// A search takes a run of slots up to an empty one, and the entries of one of them.
bool are_sound(std::span<const FilterSlot> slots, std::span<const std::uint32_t> steps) {
  if (!std::has_single_bit(slots.size()) || slots.size() < 2 || slots.size() > std::size_t{1} << 31) return false;
  const std::size_t most = std::min<std::size_t>(slots.size(), kMostSteps / 2);
  std::size_t full = 0;
  for (std::size_t i = 0; i < slots.size() + most; ++i) {  // the last run of full slots may go on at the front
    const FilterSlot& slot = slots[i & (slots.size() - 1)];
    full = slot.first == FilterSlot::kEmpty ? 0 : full + 1;
    if (full >= most) return false;
    if (full != 0 && (slot.first >= steps.size() || steps[slot.first] > kMostSteps / 2)) return false;
  }
  return true;
}

class LoadedFilter final : public function::LoadedTables {
 public:
  explicit LoadedFilter(const FilterRecipeParts& parts)
      : literals_(parts.filter), with_states_(parts.with_states), bytes_(parts.filter.bytes()) {}
  std::unique_ptr<DeviceStage> make_stage(const StageUse& use) override {
    return make_scan_stage(literals_, use.multiprocessors, with_states_);
  }
  std::size_t bytes() const noexcept override { return bytes_; }

 private:
  const DeviceLiterals literals_;
  const bool with_states_;
  const std::size_t bytes_;
};

std::unique_ptr<function::LoadedTables> load(const StageRecipe& recipe) {
  return std::make_unique<LoadedFilter>(*read_filter_recipe(recipe));
}

function::StageNeeds needs(const StageRecipe& recipe) {
  const std::uint32_t state_bytes = read_filter_recipe(recipe)->with_states ? sizeof(FlowState) : 0;
  return {scan_access(), sizeof(PacketLiterals), state_bytes, {}, /*chooses_port=*/false};
}

}  // namespace

StageRecipe recipe_of(const FilterSpans& filter, bool with_states) {
  StageRecipe recipe{
      std::string(kKernel),
      function::bytes_of_arguments(Arguments{filter.before, filter.after, filter.folds, filter.pairs, with_states, 0}),
      {}};
  function::TableWriter write_table(recipe);
  each_array(filter, write_table);
  return recipe;
}

Result<FilterRecipeParts> read_filter_recipe(const StageRecipe& recipe) {
  const auto arguments = function::read_arguments<Arguments>(recipe);
  if (!arguments) return tl::unexpected(arguments.error());
  FilterRecipeParts parts;
  parts.with_states = arguments->with_states != 0;
  FilterSpans& filter = parts.filter;
  filter.before = arguments->before;
  filter.after = arguments->after;
  filter.folds = arguments->folds != 0;
  filter.pairs = arguments->pairs != 0;
  function::TableReader read_table(recipe);
  each_array(filter, read_table);
  if (auto whole = read_table.end(); !whole) return tl::unexpected(whole.error());
  return parts;
}

Result<void> check_filter_recipe(const StageRecipe& recipe) {
  const auto parts = read_filter_recipe(recipe);
  if (!parts) return tl::unexpected(parts.error());
  const FilterSpans& filter = parts->filter;
  if (!is_size_of_bits(filter.quad_bits.size()) || !is_size_of_bits(filter.key_bits.size()) ||
      filter.pair_bits.size() != std::size_t{1} << kPairWordsLog2) {
    return refused(recipe, "number of bits");
  }
  if (filter.before > kMostLiteralBytes || filter.after > kMostLiteralBytes)
    return refused(recipe, "length of literals", std::to_string(std::max(filter.before, filter.after)));
  if (filter.entries.size() >= FilterSlot::kEmpty) return refused(recipe, "too many literals");
  const std::vector<std::uint32_t> steps = steps_of(filter);
  if (steps.size() != filter.entries.size()) return refused(recipe, "a literal leads out of its table");
  if (!are_sound(filter.quad_slots, steps) || !are_sound(filter.pair_slots, steps))
    return refused(recipe, "a window leads out of its table, or to a search that takes too long");
  return {};
}

function::RemoteKernel remote_filter_kernel() noexcept { return {kKernel, check_filter_recipe, load, needs}; }

}  // namespace penstock::nids
