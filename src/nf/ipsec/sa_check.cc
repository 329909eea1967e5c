// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "nf/ipsec/sa_check.h"

#include <cstddef>
#include <string>

#include "function/recipe_tables.h"
#include "nf/ipsec/crypto/crypto_job.h"

namespace penstock::ipsec {

namespace {

using function::is_bool;
using function::refused;

/// TFC padding makes no packet longer, so that sums of lengths fit into their type.
constexpr std::uint32_t kMostIpBytes = 0xffff;

bool has_icv_of_its_length(const SaKeys& keys) noexcept {
  if (keys.cipher == Cipher::aes_gcm) {
    return keys.integrity == Integrity::none &&
           (keys.icv_bytes == 8 || keys.icv_bytes == 12 || keys.icv_bytes == kBlockBytes);
  }
  if (keys.integrity == Integrity::digest_null) return keys.icv_bytes <= kMostIcvBytes;
  return keys.icv_bytes == icv_bytes(keys.integrity);
}

/// Whether the ciphers stay inside a packet that was laid out for the SA.
bool is_sound(const SaKeys& keys, const SaView& sa) noexcept {
  if (keys.cipher > Cipher::aes_gcm || keys.integrity > Integrity::hmac_sha256_96) return false;
  const bool rounds = keys.cipher == Cipher::null
                          ? keys.rounds <= kMostAesRounds
                          : keys.rounds == 10 || keys.rounds == 12 || keys.rounds == kMostAesRounds;
  return rounds && is_bool(keys.esn) && keys.esn == sa.esn && has_icv_of_its_length(keys) &&
         keys.iv_bytes == iv_bytes(keys.cipher) && sa.iv_bytes == keys.iv_bytes && sa.icv_bytes == keys.icv_bytes &&
         sa.block_bytes == text_unit(keys.cipher);
}

bool is_sound(const SaView& sa) noexcept {
  return sa.tfc_bytes <= kMostIpBytes && (sa.outer == NetworkLayer::ipv4 || sa.outer == NetworkLayer::ipv6) &&
         is_bool(sa.tunnel) && is_bool(sa.udp) && is_bool(sa.esn) && is_bool(sa.no_ecn) && is_bool(sa.decap_dscp) &&
         is_bool(sa.dont_encap_dscp) && is_bool(sa.no_pmtu_discovery);
}

}  // namespace

Result<void> check_sas(const function::StageRecipe& recipe, std::span<const SaView> sas, std::span<const SaKeys> keys) {
  if (sas.size() >= kNoSa) return refused(recipe, "too many SAs");
  if (keys.size() != sas.size())
    return refused(recipe, "entries for SAs", std::to_string(keys.size()), std::to_string(sas.size()));
  for (std::size_t i = 0; i < sas.size(); ++i) {
    if (!is_sound(sas[i]) || !is_sound(keys[i], sas[i]))
      return refused(recipe, "SA " + std::to_string(i) + " has algorithms, lengths or flags that do not fit together");
  }
  return {};
}

}  // namespace penstock::ipsec
