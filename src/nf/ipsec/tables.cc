// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "nf/ipsec/tables.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace penstock::ipsec {

namespace {

KeyMaterial material_of(const SecurityAssociation& sa, std::uint64_t iv_epoch) {
  KeyMaterial material;
  material.cipher = sa.cipher;
  material.cipher_key = sa.cipher_key;
  if (!sa.salt.empty()) std::copy_n(sa.salt.bytes().begin(), material.salt.size(), material.salt.begin());
  material.integrity = sa.integrity;
  material.integrity_key = sa.integrity_key;
  material.icv_bytes = sa.icv_bytes;
  material.esn = sa.esn;
  material.iv_epoch = iv_epoch;
  return material;
}

}  // namespace

KeyTable::KeyTable(std::span<const KeyMaterial> sas) : keys_(sas.size()) {
  for (std::size_t i = 0; i < sas.size(); ++i) expand(sas[i], keys_[i]);
}

KeyTable::~KeyTable() { wipe(keys_.data(), keys_.size() * sizeof(SaKeys)); }

Result<Read<std::unique_ptr<const Tables>>> Tables::build(TableSources sources) {
  std::unique_ptr<Tables> tables(new Tables);
  tables->settings_ = sources.settings;
  tables->sas_ = std::move(sources.sas);
  tables->has_policies_ = sources.policies.has_value();
  const Policies none;
  auto selection = Selection::build({tables->sas_, sources.policies ? *sources.policies : none, sources.state_file,
                                     sources.policy_file, sources.interfaces, sources.settings.mtu},
                                    sources.settings.inbound);
  if (!selection) return failure(std::move(selection).error());
  tables->selection_ = std::move(selection->value);
  if (sources.settings.inbound) {
    auto inbound = InboundTable::build(tables->sas_, sources.state_file);
    if (!inbound) return failure(std::move(inbound).error());
    tables->inbound_ = std::move(*inbound);
  }
  std::vector<KeyMaterial> materials;
  materials.reserve(tables->sas_.size());
  for (const SecurityAssociation& sa : tables->sas_) {
    materials.push_back(material_of(sa, sources.settings.iv_epoch));
    tables->states_.push_back(std::make_shared<SaState>(sa));
  }
  tables->keys_ = std::make_unique<KeyTable>(materials);
  tables->mb_keys_ = std::make_unique<MbKeys>(materials);
  return Read<std::unique_ptr<const Tables>>{std::move(tables), std::move(selection->unsupported)};
}

std::string describe(const SecurityAssociation& sa) {
  return fmt::format("0x{:08x} from {} to {}", sa.spi, to_string(sa.source), to_string(sa.destination));
}

}  // namespace penstock::ipsec
