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
  // From the numbers that it has used on, so that IVs do not come again if those go back.
  material.iv_epoch = iv_epoch - sa.sequence.sent;
  return material;
}

/// Counting IVs are only unique for a key if one SA has it.
Errors find_shared_keys(const SecurityAssociations& sas, const std::vector<std::uint32_t>& senders,
                        const std::string& file) {
  std::vector<std::uint32_t> counting;
  for (const std::uint32_t sa : senders) {
    if (sas[sa].cipher == Cipher::aes_ctr || sas[sa].cipher == Cipher::aes_gcm) counting.push_back(sa);
  }
  const auto compare = [&](std::uint32_t a, std::uint32_t b) {
    const auto of = [&](std::uint32_t sa) { return std::pair{sas[sa].cipher_key.bytes(), sas[sa].salt.bytes()}; };
    const auto [key_a, salt_a] = of(a);
    const auto [key_b, salt_b] = of(b);
    const auto keys = std::lexicographical_compare_three_way(key_a.begin(), key_a.end(), key_b.begin(), key_b.end());
    if (keys != 0) return keys;
    return std::lexicographical_compare_three_way(salt_a.begin(), salt_a.end(), salt_b.begin(), salt_b.end());
  };
  std::sort(counting.begin(), counting.end(), [&](std::uint32_t a, std::uint32_t b) {
    const auto order = compare(a, b);
    return order != 0 ? order < 0 : a < b;
  });
  counting.erase(std::unique(counting.begin(), counting.end()), counting.end());
  Errors errors;
  for (std::size_t i = 1; i < counting.size(); ++i) {
    if (compare(counting[i - 1], counting[i]) != 0) continue;
    errors.push_back({{file, sas[counting[i]].line, 0},
                      "two SAs that packets leave by have one key and salt, with a cipher that counts",
                      fmt::format("the SA of line {}", sas[counting[i - 1]].line),
                      "a key for each: else what they send can be read"});
  }
  return errors;
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
  if (!sources.settings.inbound) {
    Errors errors = find_shared_keys(tables->sas_, tables->selection_->candidates(), sources.state_file);
    if (!errors.empty()) return failure(std::move(errors));
  }
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
