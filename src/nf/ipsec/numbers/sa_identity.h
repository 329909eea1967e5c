// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// What identifies an SA, and the key that it encrypts with, in files and locks. Digests that are keyed with the SA's
// own keys: they reveal nothing about these, and who does not have the keys cannot compute them.

#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>

#include "nf/ipsec/sa/sa.h"

namespace penstock::ipsec {

/// HMAC-SHA256.
using Digest = std::array<std::uint8_t, 32>;

/// `key`: 64 bytes at most.
[[nodiscard]] Digest keyed_digest(std::span<const std::uint8_t> key, std::span<const std::uint8_t> message) noexcept;

/// An SA is unidirectional. Its two ends keep different things: numbers and IVs, or a replay window.
enum class SaEnd : std::uint8_t { sender, receiver };

/// IVs must be unique for a key, whichever SA has it. So a sender's record and lock belong to the key that encrypts,
/// with its salt; without a cipher, to the SA. A receiver's lock belongs to the SA.
struct SaIdentity {
  SaEnd end = SaEnd::sender;
  bool has_iv = false;
  Digest owner{};  // of lock and record: what another process must not have at the same time
  Digest sa{};     // the SA itself: keys, destination and SPI
  Digest seal{};   // keys the checksum of the record

  /// The record's file: the first 16 bytes of `owner` in hexadecimal.
  [[nodiscard]] std::string file_name() const;
  /// The byte of the lock file that stands for `owner`.
  [[nodiscard]] std::uint64_t lock_place() const noexcept;
};

[[nodiscard]] SaIdentity identity_of(const SecurityAssociation& sa, SaEnd end);

/// Differs wherever two SAs differ in keys or algorithms.
[[nodiscard]] Digest fingerprint_of(const SecurityAssociation& sa);

}  // namespace penstock::ipsec
