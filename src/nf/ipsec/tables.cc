// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "nf/ipsec/tables.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "nf/ipsec/table_changes.h"

namespace penstock::ipsec {

namespace {

KeyMaterial material_of(const SecurityAssociation& sa) {
  KeyMaterial material;
  material.cipher = sa.cipher;
  material.cipher_key = sa.cipher_key;
  if (!sa.salt.empty()) std::copy_n(sa.salt.bytes().begin(), material.salt.size(), material.salt.begin());
  material.integrity = sa.integrity;
  material.integrity_key = sa.integrity_key;
  material.icv_bytes = sa.icv_bytes;
  material.esn = sa.esn;
  return material;
}

/// By SA, whether packets may use it.
std::vector<bool> find_used(const SecurityAssociations& sas, const Selection& selection, bool inbound) {
  std::vector<bool> used(sas.size(), false);
  for (std::size_t i = 0; i < sas.size() && inbound; ++i) used[i] = sas[i].direction != Direction::out;
  if (inbound) return used;
  for (const std::uint32_t sa : selection.candidates()) used[sa] = true;
  return used;
}

}  // namespace

KeyTable::KeyTable(std::span<const KeyMaterial> sas) : keys_(sas.size()) {
  for (std::size_t i = 0; i < sas.size(); ++i) expand(sas[i], keys_[i]);
}

KeyTable::~KeyTable() { wipe(keys_.data(), keys_.size() * sizeof(SaKeys)); }

Result<Read<std::unique_ptr<Tables>>> Tables::build(TableSources sources) {
  std::unique_ptr<Tables> tables(new Tables);
  const bool inbound = sources.settings.inbound;
  tables->settings_ = sources.settings;
  tables->sas_ = std::move(sources.sas);
  tables->has_policies_ = sources.policies.has_value();
  tables->interfaces_ = sources.interfaces;
  const Policies none;
  for (const Policy& policy : sources.policies ? *sources.policies : none) {
    if ((policy.direction == Direction::out) != inbound) tables->policy_hashes_.push_back(hash_of(policy));
  }
  auto selection = Selection::build({tables->sas_, sources.policies ? *sources.policies : none, sources.state_file,
                                     sources.policy_file, sources.interfaces, sources.settings.mtu},
                                    inbound);
  if (!selection) return failure(std::move(selection).error());
  tables->selection_ = std::move(selection->value);
  if (inbound) {
    auto table = InboundTable::build(tables->sas_, sources.state_file);
    if (!table) return failure(std::move(table).error());
    tables->inbound_ = std::move(*table);
  }
  tables->numbers_ = std::move(sources.numbers);
  tables->counting_ = sources.registry->counting();
  const std::vector<bool> used = find_used(tables->sas_, *tables->selection_, inbound);
  std::vector<KeyMaterial> materials;
  materials.reserve(tables->sas_.size());
  Errors errors;
  for (std::size_t i = 0; i < tables->sas_.size(); ++i) {
    const SecurityAssociation& sa = tables->sas_[i];
    materials.push_back(material_of(sa));
    if (!used[i]) {
      tables->states_.push_back(std::make_shared<SaState>(sa));
      continue;
    }
    auto state = sources.registry->state_of(sa, inbound ? SaEnd::receiver : SaEnd::sender, sources.state_file,
                                            *tables->numbers_);
    if (!state) {
      append(errors, std::move(state).error());
      continue;
    }
    tables->used_.push_back(*state);
    tables->states_.push_back(std::move(*state));
  }
  if (!errors.empty()) return failure(std::move(errors));
  tables->keys_ = std::make_unique<KeyTable>(materials);
  tables->mb_keys_ = std::make_unique<MbKeys>(materials);
  return Read<std::unique_ptr<Tables>>{std::move(tables), std::move(selection->unsupported)};
}

Result<void> Tables::begin_run() {
  end_run();
  if (auto begun = numbers_->begin(used_); !begun) return begun;
  for (const auto& state : used_) state->begin_use();
  runs_ = true;
  for (std::uint32_t sa = 0; sa < states_.size(); ++sa) {
    keys_->set_iv_base(sa, states_[sa]->iv_base());
    mb_keys_->set_iv_base(sa, states_[sa]->iv_base());
  }
  return {};
}

void Tables::end_run() noexcept {
  if (!std::exchange(runs_, false)) return;
  numbers_->end(used_);
  for (const auto& state : used_) state->end_use();
}

}  // namespace penstock::ipsec
