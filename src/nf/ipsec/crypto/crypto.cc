// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "nf/ipsec/crypto/crypto.h"

namespace penstock::ipsec {

CryptoNeeds needs_of(std::span<const SaKeys> keys) noexcept {
  CryptoNeeds needs;
  for (const SaKeys& sa : keys) {
    const Proof proof = proof_of(sa.cipher, sa.integrity);
    needs.cbc |= sa.cipher == Cipher::aes_cbc;
    needs.counter |= sa.cipher == Cipher::aes_ctr || sa.cipher == Cipher::aes_gcm;
    needs.sha1 |= proof == Proof::sha1;
    needs.sha256 |= proof == Proof::sha256;
    needs.ghash |= proof == Proof::ghash;
  }
  return needs;
}

DeviceKeys::~DeviceKeys() {
  if (keys_.data() != nullptr) gpu::wipe(keys_.data(), keys_.size_bytes());
}

}  // namespace penstock::ipsec
