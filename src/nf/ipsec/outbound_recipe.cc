// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "nf/ipsec/outbound_recipe.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "function/recipe_tables.h"
#include "nf/ipsec/crypto/crypto_job.h"
#include "nf/ipsec/device_tables.h"
#include "nf/ipsec/esp/decision_core.h"
#include "nf/ipsec/recipe.h"
#include "nf/ipsec/sa_check.h"

namespace penstock::ipsec {

namespace {

using function::StageRecipe;

constexpr std::string_view kOutboundKernel = "ipsec_outbound";

struct SealingArguments {
  std::uint32_t growth_head;
  std::uint32_t growth_tail;
};

class LoadedOutbound final : public function::LoadedTables {
 public:
  explicit LoadedOutbound(const SealingSpans& tables) : copies_(tables) {}
  std::unique_ptr<DeviceStage> make_stage(const StageUse& use) override { return make_sealing_gpu_stage(copies_, use); }
  std::size_t bytes() const noexcept override { return copies_.bytes(); }
  std::size_t stage_bytes(const StageUse& use) const noexcept override {
    // A job, and its place in two orders; the bounds of the classes are few.
    constexpr std::size_t kOfPacket = sizeof(CryptoJob) + 2 * sizeof(std::uint32_t);
    constexpr std::size_t kOthers = std::size_t{4} << 10;
    return use.batch_packets * kOfPacket + kOthers;
  }

 private:
  const SealingCopies copies_;
};

std::unique_ptr<function::LoadedTables> load_outbound(const StageRecipe& recipe) {
  return std::make_unique<LoadedOutbound>(*read_outbound_recipe(recipe));
}

/// A lane has the room that frames may grow into, or does not get the stage.
function::StageNeeds needs_outbound(const StageRecipe& recipe) {
  const SealingSpans tables = *read_outbound_recipe(recipe);
  const std::size_t state_bytes = tables.key.empty() ? sizeof(Decision) : sizeof(SignedDecision);
  return {device_access(), sizeof(OutboundFinding), static_cast<std::uint32_t>(state_bytes), tables.growth,
          /*chooses_port=*/false};
}

/// The tables, and which numbers are used.
std::uint64_t outbound_load_bytes(const StageRecipe& recipe) {
  const SealingSpans tables = *read_outbound_recipe(recipe);
  const std::size_t used = tables.key.empty() ? 0 : used_words(tables.sas.size()) * sizeof(unsigned long long);
  return tables.sas.size_bytes() + tables.keys.size_bytes() + used;
}

}  // namespace

StageRecipe recipe_of(const SealingSpans& tables) {
  StageRecipe recipe{std::string(kOutboundKernel),
                     function::bytes_of_arguments(SealingArguments{tables.growth.head, tables.growth.tail}),
                     {}};
  function::TableWriter write_table(recipe);
  write_table(tables.sas);
  recipe.tables.push_back(function::secret_table(function::bytes_of(tables.keys)));
  recipe.tables.push_back(function::secret_table(function::bytes_of(tables.key)));
  return recipe;
}

Result<SealingSpans> read_outbound_recipe(const StageRecipe& recipe) {
  const auto arguments = function::read_arguments<SealingArguments>(recipe);
  if (!arguments) return tl::unexpected(arguments.error());
  SealingSpans tables;
  tables.growth = {arguments->growth_head, arguments->growth_tail};
  function::TableReader read_table(recipe);
  read_table(tables.sas);
  read_table(tables.keys);
  read_table(tables.key);
  if (auto whole = read_table.end(); !whole) return tl::unexpected(whole.error());
  return tables;
}

Result<void> check_outbound_recipe(const StageRecipe& recipe) {
  constexpr std::uint32_t kMostGrowth = std::uint32_t{1} << 20;  // so that sums of lengths fit into their type
  const auto tables = read_outbound_recipe(recipe);
  if (!tables) return tl::unexpected(tables.error());
  if (tables->growth.head > kMostGrowth || tables->growth.tail > kMostGrowth)
    return function::refused(recipe, "frames that grow by too much");
  if (tables->key.size() > 1) return function::refused(recipe, "several keys of decisions");
  return check_sas(recipe, tables->sas, tables->keys);
}

function::RemoteKernel remote_outbound_kernel() noexcept {
  return {kOutboundKernel, check_outbound_recipe, load_outbound, needs_outbound, outbound_load_bytes};
}

}  // namespace penstock::ipsec
