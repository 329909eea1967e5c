// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The record kept for a key in state_dir: which runs have used it, and up to which sequence number each of its SAs has
// reserved. Contains no key material.
//
// A file has two slots. Writes alternate between them, and each increases the generation by one. So a write that a
// crash interrupts leaves the other slot intact:
//
//     | "penstock" | version | runs | entries | generation | inode | born | entries … | runs … | checksum |
//     | 8          | 4       | 4    | 4       | 8          | 8     | 8    | 24 each   | 2 each | 16       |
//
// Integers are little-endian. The checksum is an HMAC keyed with a digest of the SA's keys.

#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <vector>

#include "nf/ipsec/numbers/sa_identity.h"
#include "nf/ipsec/numbers/state_folder.h"

namespace penstock::ipsec {

struct NumberRecord {
  struct Entry {
    std::array<std::uint8_t, 16> sa{};  // the first bytes of SaIdentity::sa
    std::uint64_t reserved = 0;         // the SA may have used numbers up to this one

    friend bool operator==(const Entry&, const Entry&) = default;
  };
  std::uint64_t generation = 0;
  FileIdentity file;  // identity of the file that the record was written to
  std::vector<Entry> entries;
  std::vector<std::uint16_t> runs;  // in any order

  friend bool operator==(const NumberRecord&, const NumberRecord&) = default;
};

/// Size of a slot in bytes; the second slot starts there.
inline constexpr std::size_t kSlotBytes = 256 << 10;
inline constexpr std::size_t kMostRecordEntries = 4096;
inline constexpr std::size_t kMostRuns = 60'000;

/// No write raises `reserved` by more than this, so it bounds what a lost write may have reserved.
inline constexpr std::uint64_t kMostReservation = std::uint64_t{1} << 26;

[[nodiscard]] std::string encode(const NumberRecord& record, const Digest& seal);

/// An error if the slot is damaged.
[[nodiscard]] tl::expected<NumberRecord, std::string> decode(std::string_view slot, const Digest& seal);

/// Offset of the slot for a generation.
[[nodiscard]] constexpr std::uint64_t slot_of(std::uint64_t generation) noexcept { return generation % 2 * kSlotBytes; }

/// Why a record is refused if it was not written to this file.
inline constexpr std::string_view kCopiedRecord = "a copy (restored from a backup, or from another folder or machine)";

/// Reads a file's record. If one slot is damaged, it may have been the newer one; numbers then start after everything
/// that it can have reserved. An error says why nothing is known of the numbers.
[[nodiscard]] tl::expected<NumberRecord, std::string> read_record(StateFolder& folder, const std::string& name,
                                                                  const Digest& seal);

}  // namespace penstock::ipsec
