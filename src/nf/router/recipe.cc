// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "nf/router/recipe.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <functional>
#include <string>

#include "function/recipe_tables.h"
#include "nf/router/device_tables.h"
#include "nf/router/router_stage.h"

namespace penstock::router {

namespace {

using function::refused;
using function::StageRecipe;

constexpr std::string_view kKernel = "router";

struct Arguments {
  PortIndex host;
  Fib4Engine engine;
  std::uint8_t verify_checksum, drop_martians, answers;
};

/// No route has more next hops (README.md).
constexpr std::size_t kMostHops = 1024;
/// In a table that is at most half full, so many neighbours do not follow each other.
constexpr std::size_t kMostFullSlots = 4096;

template <typename View>
constexpr std::size_t kLargestNode = [] {
  unsigned stride = 0;
  for (std::size_t level = 0; level < View::kLevels; ++level) stride = std::max(stride, View::stride(level));
  return std::size_t{1} << stride;
}();

/// The nodes with as many entries at their end that every node could be one of the largest. So a check need not know at
/// which levels a node is used.
template <typename View>
constexpr std::size_t kPadding = kLargestNode<View> - (std::size_t{1} << View::kUnitBits);

template <typename View>
void write(const TrieSpans<View>& trie, function::TableWriter& write_table) {
  for (const EntryRuns& runs : {runs_of(trie.root, 0), runs_of(trie.nodes, kPadding<View>)}) {
    write_table(runs.spans().values);
    write_table(runs.spans().ends);
  }
}

template <typename View>
TrieRuns<View> read_trie(function::TableReader& read_table) {
  TrieRuns<View> trie;
  for (RunSpans* const runs : {&trie.root, &trie.nodes}) {
    read_table(runs->values);
    read_table(runs->ends);
  }
  return trie;
}

template <typename View>
bool is_whole(const TrieRuns<View>& trie) noexcept {
  return trie.root.are_whole() && trie.nodes.are_whole();
}

/// A lookup takes as many steps as the trie has levels, so that every entry on its way only has to lead to an entry or
/// a hop. The entries of a run are alike.
template <typename View>
Result<void> check_trie(const StageRecipe& recipe, const TrieRuns<View>& trie, std::size_t hops) {
  if (trie.root.size() != View::kRootEntries) {
    return refused(recipe, "root of a trie", std::to_string(trie.root.size()) + " entries",
                   std::to_string(View::kRootEntries));
  }
  if (trie.nodes.size() > ~std::uint32_t{0}) return refused(recipe, "too large a trie");
  const std::size_t nodes = trie.nodes.size();
  const auto is_inside = [&](std::uint32_t entry) {
    if (!is_child(entry)) return entry_value(entry) == kNoRoute || entry_value(entry) < hops;
    return (std::size_t{child_node(entry)} << View::kUnitBits) + kLargestNode<View> <= nodes;
  };
  if (std::ranges::all_of(trie.root.values, is_inside) && std::ranges::all_of(trie.nodes.values, is_inside)) return {};
  return refused(recipe, "an entry of a trie leads out of its table");
}

/// Groups are not marked in the table, so that any hop may begin one.
Result<void> check_hops(const StageRecipe& recipe, const TableRuns& tables) {
  std::size_t open = 0;  // hops since the last that ends a group
  for (const Hop& hop : tables.hops) {
    open = hop.upper_bound == ~std::uint32_t{0} ? 0 : open + 1;
    if (open >= kMostHops) return refused(recipe, "too long a group of next hops");
    if (hop.kind == RouteKind::unicast && hop.port >= tables.ports.size()) {
      return refused(recipe, "port of a next hop", std::to_string(hop.port),
                     "less than " + std::to_string(tables.ports.size()));
    }
  }
  if (open != 0) return refused(recipe, "the last group of next hops has no end");
  return {};
}

/// A search ends at an empty slot.
Result<void> check_neighbours(const StageRecipe& recipe, std::span<const Neighbour> slots) {
  if (!std::has_single_bit(slots.size()) || slots.size() > std::size_t{1} << 31) {
    return refused(recipe, "number of slots for neighbours", std::to_string(slots.size()), "a power of two");
  }
  // The last run of full slots may go on at the front.
  std::size_t full = 0;
  for (std::size_t i = 0; i < slots.size() + std::min(slots.size(), kMostFullSlots); ++i) {
    full = slots[i & (slots.size() - 1)].device == kNoPort ? 0 : full + 1;
    if (full >= std::min(slots.size(), kMostFullSlots)) return refused(recipe, "too many neighbours without a gap");
  }
  return {};
}

Result<void> check_ports(const StageRecipe& recipe, std::span<const EgressPort> ports) {
  const bool good =
      std::ranges::all_of(ports, [](const EgressPort& port) { return function::is_bool(port.rewrite_source); });
  if (!good) return refused(recipe, "a port is neither rewritten nor kept");
  return {};
}

class LoadedRouter final : public function::LoadedTables {
 public:
  explicit LoadedRouter(const RecipeParts& parts)
      : side_(parts.tables), rules_(parts.rules), bytes_(parts.tables.bytes()) {}
  std::unique_ptr<DeviceStage> make_stage(const StageUse& /*use*/) override { return side_.make_stage(rules_); }
  bool replace(const StageRecipe& recipe, const std::function<void()>& meanwhile) override {
    const RecipeParts parts = *read_recipe(recipe);
    if (parts.rules != rules_) return false;
    side_.replace(parts.tables, meanwhile);
    bytes_ = parts.tables.bytes();
    return true;
  }
  std::size_t bytes() const noexcept override { return bytes_; }

 private:
  DeviceSide side_;
  CheckRules rules_;
  std::size_t bytes_;
};

std::unique_ptr<function::LoadedTables> load(const StageRecipe& recipe) {
  return std::make_unique<LoadedRouter>(*read_recipe(recipe));
}

/// The tables, and the runs of one array, from which a kernel writes it.
std::uint64_t load_bytes(const StageRecipe& recipe) {
  const TableRuns tables = read_recipe(recipe)->tables;
  const auto runs = [](const auto& trie) {
    return std::max(trie.root.ends.size_bytes(), trie.nodes.ends.size_bytes()) * 2;
  };
  return tables.bytes() + std::max(std::visit(runs, tables.v4), runs(tables.v6));
}

function::StageNeeds needs(const StageRecipe& recipe) {
  const function::NfTraits traits = router_traits(read_recipe(recipe)->rules, true, true);
  return {*traits.access_on(function::Processor::gpu), traits.findings_bytes, traits.state_bytes, traits.growth};
}

}  // namespace

StageRecipe recipe_of(const TableSpans& tables, CheckRules rules) {
  StageRecipe recipe{std::string(kKernel),
                     function::bytes_of_arguments(Arguments{rules.host, static_cast<Fib4Engine>(tables.v4.index()),
                                                            rules.verify_checksum, rules.drop_martians, rules.answers}),
                     {}};
  function::TableWriter write_table(recipe);
  std::visit([&](const auto& trie) { write(trie, write_table); }, tables.v4);
  write(tables.v6, write_table);
  write_table(tables.hops);
  write_table(tables.neighbours);
  write_table(tables.ports);
  return recipe;
}

Result<RecipeParts> read_recipe(const StageRecipe& recipe) {
  const auto arguments = function::read_arguments<Arguments>(recipe);
  if (!arguments) return tl::unexpected(arguments.error());
  RecipeParts parts{{},
                    {.verify_checksum = arguments->verify_checksum != 0,
                     .drop_martians = arguments->drop_martians != 0,
                     .answers = arguments->answers != 0,
                     .host = arguments->host}};
  TableRuns& tables = parts.tables;
  function::TableReader read_table(recipe);
  switch (arguments->engine) {
    case Fib4Engine::kDir24: tables.v4 = read_trie<Dir24View>(read_table); break;
    case Fib4Engine::kTrie1: tables.v4 = read_trie<Trie1View>(read_table); break;
    case Fib4Engine::kTrie4: tables.v4 = read_trie<Trie4View>(read_table); break;
    default: return refused(recipe, "unknown engine", std::to_string(static_cast<unsigned>(arguments->engine)));
  }
  tables.v6 = read_trie<Fib6View>(read_table);
  read_table(tables.hops);
  read_table(tables.neighbours);
  read_table(tables.ports);
  if (auto whole = read_table.end(); !whole) return tl::unexpected(whole.error());
  if (!std::visit([](const auto& trie) { return is_whole(trie); }, tables.v4) || !is_whole(tables.v6))
    return refused(recipe, "runs of a trie that do not follow each other");
  return parts;
}

Result<void> check_recipe(const StageRecipe& recipe) {
  const auto parts = read_recipe(recipe);
  if (!parts) return tl::unexpected(parts.error());
  const TableRuns& tables = parts->tables;
  const PortIndex host = parts->rules.host;
  if (host != kNoPort && host >= tables.ports.size()) return refused(recipe, "port of the host", std::to_string(host));
  const std::size_t hops = tables.hops.size();
  if (auto v4 = std::visit([&](const auto& trie) { return check_trie(recipe, trie, hops); }, tables.v4); !v4) return v4;
  if (auto v6 = check_trie(recipe, tables.v6, hops); !v6) return v6;
  if (auto checked = check_hops(recipe, tables); !checked) return checked;
  if (auto checked = check_neighbours(recipe, tables.neighbours); !checked) return checked;
  return check_ports(recipe, tables.ports);
}

function::RemoteKernel remote_kernel() noexcept { return {kKernel, check_recipe, load, needs, load_bytes}; }

}  // namespace penstock::router
