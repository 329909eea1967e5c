// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// What is kept of a key in state_dir: which runs have sent with it, and up to which sequence number each of its SAs has
// reserved numbers. It holds no key material.
//
// A file has two slots, which are written in turn, each with a generation one higher than the other's. So a write that
// a crash breaks off leaves the other slot as it was:
//
//     | "penstock" | version | runs | entries | generation | inode | born | entries … | runs … | checksum |
//     | 8          | 4       | 4    | 4       | 8          | 8     | 8    | 24 each   | 2 each | 16       |
//
// Numbers are little-endian. The checksum is an HMAC under a digest of the SA's keys.

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
    std::uint64_t reserved = 0;         // the SA may have sent with numbers up to this one

    friend bool operator==(const Entry&, const Entry&) = default;
  };
  std::uint64_t generation = 0;
  FileIdentity file;  // of the file that it was written to
  std::vector<Entry> entries;
  std::vector<std::uint16_t> runs;  // in any order

  friend bool operator==(const NumberRecord&, const NumberRecord&) = default;
};

/// The most bytes that one slot takes; the second begins there.
inline constexpr std::size_t kSlotBytes = 256 << 10;
inline constexpr std::size_t kMostRecordEntries = 4096;
inline constexpr std::size_t kMostRuns = 60'000;

/// No write moves `reserved` further than this, so it bounds what a lost write may have reserved.
inline constexpr std::uint64_t kMostReservation = std::uint64_t{1} << 26;

[[nodiscard]] std::string encode(const NumberRecord& record, const Digest& seal);

/// Nothing where it is damaged.
[[nodiscard]] tl::expected<NumberRecord, std::string> decode(std::string_view slot, const Digest& seal);

/// Where the slot of a generation begins.
[[nodiscard]] constexpr std::uint64_t slot_of(std::uint64_t generation) noexcept { return generation % 2 * kSlotBytes; }

/// Why a record is refused that was not written at this place.
inline constexpr std::string_view kCopiedRecord = "a copy (restored from a backup, or from another folder or machine)";

/// The record that a file holds. Where one slot is damaged, it may be the newer one: then numbers begin after all that
/// it can have reserved. An error says why nothing is known of the numbers.
[[nodiscard]] tl::expected<NumberRecord, std::string> read_record(StateFolder& folder, const std::string& name,
                                                                  const Digest& seal);

}  // namespace penstock::ipsec
