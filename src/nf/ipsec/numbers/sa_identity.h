// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Identifies an SA, and its encryption key, in files and locks. Digests keyed with the SA's own keys: they reveal
// nothing about the keys, and cannot be computed without them.

#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>

#include "nf/ipsec/sa/sa.h"

namespace penstock::ipsec {

/// HMAC-SHA256.
using Digest = std::array<std::uint8_t, 32>;

/// `key`: at most 64 bytes.
[[nodiscard]] Digest keyed_digest(std::span<const std::uint8_t> key, std::span<const std::uint8_t> message) noexcept;

/// An SA is unidirectional. Its sender keeps numbers and IVs, its receiver a replay window.
enum class SaEnd : std::uint8_t { sender, receiver };

/// IVs must be unique per key, whichever SA uses it. So a sender's record and lock belong to the encryption key and its
/// salt or, without a cipher, to the SA. A receiver's lock belongs to the SA.
struct SaIdentity {
  SaEnd end = SaEnd::sender;
  bool has_iv = false;
  Digest owner{};  // identifies lock and record: what two processes must not use at the same time
  Digest sa{};     // identifies the SA: keys, destination and SPI
  Digest seal{};   // key for the record's checksum

  /// Name of the record's file: the first 16 bytes of `owner` in hexadecimal.
  [[nodiscard]] std::string file_name() const;
  /// Offset of the byte in the lock file that stands for `owner`.
  [[nodiscard]] std::uint64_t lock_place() const noexcept;
};

[[nodiscard]] SaIdentity identity_of(const SecurityAssociation& sa, SaEnd end);

/// Differs whenever two SAs differ in keys or algorithms.
[[nodiscard]] Digest fingerprint_of(const SecurityAssociation& sa);

}  // namespace penstock::ipsec
