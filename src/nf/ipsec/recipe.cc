// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "nf/ipsec/recipe.h"

#include <algorithm>
#include <bit>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "function/recipe_tables.h"
#include "nf/ipsec/crypto/crypto_job.h"
#include "nf/ipsec/device_tables.h"
#include "nf/ipsec/sa_check.h"

namespace penstock::ipsec {

namespace {

using function::is_bool;
using function::refused;
using function::StageRecipe;

constexpr std::string_view kKernel = "ipsec_inbound";

struct Arguments {
  classify::TableArguments engine;
  std::uint8_t has_policies;
  std::uint8_t reserved[3];
};

/// In a table that is at most half full, so many SAs do not follow each other.
constexpr std::size_t kMostFullSlots = 4096;

/// All but those of the engine, which come first, and the keys, which come last.
template <typename Tables, typename Use>
void each_array(Tables& tables, Use& use) {
  use(tables.selection.policies);
  use(tables.selection.sas);
  use(tables.selection.selectors);
  use(tables.inbound.slots);
  use(tables.inbound.other_ports);
  use(tables.windows);
  use(tables.tops);
}

bool is_sound(const SelectorView& selector) noexcept {
  return is_bool(selector.any_source_port) && is_bool(selector.any_destination_port) && is_bool(selector.nothing);
}

Result<void> check_entries(const StageRecipe& recipe, const TableSpans& tables) {
  const std::size_t sas = tables.selection.sas.size();
  for (const std::size_t size : {tables.selection.selectors.size(), tables.windows.size(), tables.tops.size()}) {
    if (size != sas) return refused(recipe, "entries for SAs", std::to_string(size), std::to_string(sas));
  }
  if (!std::ranges::all_of(tables.selection.selectors, [](const SelectorView& one) { return is_sound(one); }))
    return refused(recipe, "a selector with a flag that is none");
  return check_sas(recipe, tables.selection.sas, tables.keys);
}

/// A search ends at a free slot.
Result<void> check_slots(const StageRecipe& recipe, std::span<const SaSlot> slots, std::size_t sas) {
  if (!std::has_single_bit(slots.size()) || slots.size() > std::size_t{1} << 31)
    return refused(recipe, "number of slots for SAs", std::to_string(slots.size()), "a power of two");
  const std::size_t most = std::min(slots.size(), kMostFullSlots);
  std::size_t full = 0;
  for (std::size_t i = 0; i < slots.size() + most; ++i) {  // the last run of full slots may go on at the front
    const SaSlot& slot = slots[i & (slots.size() - 1)];
    full = slot.family == NetworkLayer::none ? 0 : full + 1;
    if (full >= most) return refused(recipe, "too many SAs without a gap");
    if (full == 0) continue;
    if (!is_bool(slot.udp) || (slot.spi != 0 && slot.sa >= sas)) return refused(recipe, "a slot leads to no SA");
  }
  return {};
}

Result<void> check_policies(const StageRecipe& recipe, const SelectionSpans& tables) {
  if (!std::holds_alternative<classify::BitVectorSpans>(tables.engine.engine))
    return refused(recipe, "policies in tables of another engine");
  if (tables.policies.size() != tables.engine.entries.size()) {
    return refused(recipe, "number of policies", std::to_string(tables.policies.size()),
                   std::to_string(tables.engine.entries.size()));
  }
  const auto is_policy = [](const PolicyView& policy) {
    return policy.handling <= Handling::refuse && is_bool(policy.wanted.tunnel);
  };
  if (!std::ranges::all_of(tables.policies, is_policy)) return refused(recipe, "a policy of an unknown kind");
  return classify::check_tables(recipe, tables.engine);
}

class LoadedInbound final : public function::LoadedTables {
 public:
  explicit LoadedInbound(const TableSpans& tables) : copies_(tables) {}
  std::unique_ptr<DeviceStage> make_stage(const StageUse& use) override {
    return make_inbound_gpu_stage(copies_, WrongIcv::punt, use);
  }
  std::size_t bytes() const noexcept override { return copies_.bytes(); }
  std::size_t stage_bytes(const StageUse& use) const noexcept override {
    // A job, whether it is authentic, and its place in two orders; the bounds of the classes are few.
    constexpr std::size_t kOfPacket = sizeof(CryptoJob) + 1 + 2 * sizeof(std::uint32_t);
    constexpr std::size_t kOthers = std::size_t{4} << 10;
    return use.batch_packets * kOfPacket + kOthers;
  }

 private:
  const DeviceCopies copies_;
};

std::unique_ptr<function::LoadedTables> load(const StageRecipe& recipe) {
  return std::make_unique<LoadedInbound>(*read_recipe(recipe));
}

function::StageNeeds needs(const StageRecipe& /*recipe*/) { return {device_access(), sizeof(InboundFinding), 0, {}}; }

}  // namespace

StageRecipe recipe_of(const TableSpans& tables) {
  StageRecipe recipe{
      std::string(kKernel),
      function::bytes_of_arguments(Arguments{classify::arguments_of(tables.selection.engine), tables.has_policies, {}}),
      {}};
  function::TableWriter write_table(recipe);
  classify::each_array(tables.selection.engine, write_table);
  each_array(tables, write_table);
  recipe.tables.push_back(function::secret_table(function::bytes_of(tables.keys)));
  return recipe;
}

Result<TableSpans> read_recipe(const StageRecipe& recipe) {
  const auto arguments = function::read_arguments<Arguments>(recipe);
  if (!arguments) return tl::unexpected(arguments.error());
  TableSpans tables;
  tables.has_policies = arguments->has_policies != 0;
  function::TableReader read_table(recipe);
  tables.selection.engine = classify::read_tables(arguments->engine, read_table);
  each_array(tables, read_table);
  read_table(tables.keys);
  if (auto whole = read_table.end(); !whole) return tl::unexpected(whole.error());
  return tables;
}

Result<void> check_recipe(const StageRecipe& recipe) {
  const auto tables = read_recipe(recipe);
  if (!tables) return tl::unexpected(tables.error());
  if (auto checked = check_entries(recipe, *tables); !checked) return checked;
  if (auto checked = check_slots(recipe, tables->inbound.slots, tables->selection.sas.size()); !checked) return checked;
  const std::size_t words = tables->inbound.other_ports.size();
  if (words != 0 && words != NatTraversalPorts::kWords)
    return refused(recipe, "ports for ESP in UDP", std::to_string(words) + " words");
  return check_policies(recipe, tables->selection);
}

function::RemoteKernel remote_kernel() noexcept { return {kKernel, check_recipe, load, needs}; }

}  // namespace penstock::ipsec
