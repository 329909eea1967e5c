// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "nf/firewall/recipe.h"

#include <string>

#include "classify/device_tables.h"
#include "function/recipe_tables.h"
#include "nf/firewall/device_stage.h"
#include "nf/firewall/translating_core.h"

namespace penstock::firewall {

namespace {

using function::StageRecipe;

constexpr std::string_view kKernel = "firewall";

struct Arguments {
  classify::TableArguments tables;
  StageKind kind;
  std::uint8_t reserved[3];
};

class LoadedFirewall final : public function::LoadedTables {
 public:
  explicit LoadedFirewall(const RecipeParts& parts) : tables_(parts.tables), kind_(parts.kind) {}
  std::unique_ptr<DeviceStage> make_stage(const StageUse& /*use*/) override {
    if (kind_ == StageKind::translating) return make_translating_gpu_stage(tables_);
    return make_firewall_gpu_stage(tables_, kind_ == StageKind::tracked);
  }
  std::size_t bytes() const noexcept override { return tables_.bytes(); }

 private:
  const classify::DeviceTables tables_;
  const StageKind kind_;
};

std::unique_ptr<function::LoadedTables> load(const StageRecipe& recipe) {
  return std::make_unique<LoadedFirewall>(*read_recipe(recipe));
}

function::StageNeeds needs(const StageRecipe& recipe) {
  const StageKind kind = read_recipe(recipe)->kind;
  const std::uint32_t state_bytes = kind == StageKind::translating ? sizeof(TranslatingState)
                                    : kind == StageKind::tracked   ? sizeof(conntrack::PacketConnection)
                                                                   : 0;
  return {device_access(kind), sizeof(JudgeCore<classify::LinearView>::Finding), state_bytes, {}, false};
}

}  // namespace

Access device_access(StageKind kind) noexcept {
  // Packets that pass keep their verdict, so the verdict is also read; it has the output port. Parsing reads the
  // protocol, the fragment fields and the TCP flags.
  constexpr FieldSet kTested{Field::ipv4_src,    Field::ipv4_dst,    Field::ipv6_src,       Field::ipv6_dst,
                             Field::l4_src_port, Field::l4_dst_port, Field::icmp_type_code, Field::in_port};
  // The payload of ICMP errors quotes a packet; devices leave them to the CPU.
  constexpr FieldSet kTranslated{Field::ipv4_checksum, Field::ipv4_src,    Field::ipv4_dst,
                                 Field::ipv6_src,      Field::ipv6_dst,    Field::l4_src_port,
                                 Field::l4_dst_port,   Field::l4_checksum, Field::icmp_rest};
  Access access{kParsedFields | kTested | FieldSet{Field::verdict}, {Field::verdict}};
  if (kind == StageKind::translating) {
    access.reads |= kTranslated;
    access.writes |= kTranslated;
  }
  return access;
}

StageRecipe recipe_of(const classify::TableSpans& tables, StageKind kind) {
  StageRecipe recipe{
      std::string(kKernel), function::bytes_of_arguments(Arguments{classify::arguments_of(tables), kind, {}}), {}};
  function::TableWriter write_table(recipe);
  classify::each_array(tables, write_table);
  return recipe;
}

Result<RecipeParts> read_recipe(const StageRecipe& recipe) {
  const auto arguments = function::read_arguments<Arguments>(recipe);
  if (!arguments) return tl::unexpected(arguments.error());
  if (arguments->kind > StageKind::translating) return function::refused(recipe, "unknown stage");
  function::TableReader read_table(recipe);
  RecipeParts parts{classify::read_tables(arguments->tables, read_table), arguments->kind};
  if (auto whole = read_table.end(); !whole) return tl::unexpected(whole.error());
  return parts;
}

Result<void> check_recipe(const StageRecipe& recipe) {
  const auto parts = read_recipe(recipe);
  if (!parts) return tl::unexpected(parts.error());
  return classify::check_tables(recipe, parts->tables);
}

function::RemoteKernel remote_kernel() noexcept { return {kKernel, check_recipe, load, needs}; }

}  // namespace penstock::firewall
