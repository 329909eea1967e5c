// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Aggregated bit vectors (Lakshman & Stiliadis, SIGCOMM 1998; Baboescu & Varghese, SIGCOMM 2001), shared by host and
// device. Each dimension of a key (an address, a port, …) is divided into intervals within which all entries'
// conditions give the same result. All values of an interval share a vector with one bit per entry, set if the entry
// matches in this dimension. The first bit that is set in the vectors of all dimensions is the first match.
//
//   record of a vector:  | summary: a bit for each word that is not 0 | block number | block number | …
//   block:               | 8 words: 512 entries |      equal vectors are stored once, and so are equal blocks

#pragma once

#include <cstdint>

#include "base/ip_address.h"
#include "classify/rule.h"

namespace penstock::classify {

inline constexpr std::uint32_t kWordsPerBlock = 8;
inline constexpr std::uint32_t kEntriesPerBlock = 64 * kWordsPerBlock;
inline constexpr std::uint32_t kMaxDimensions = 7;

struct alignas(64) VectorBlock {
  std::uint64_t words[kWordsPerBlock];
};

/// IPv4 address -> record, in three branch-free steps of 16, 8 and 8 bits. A node of `top` and `middle` is twice the
/// slot where the next step begins, plus 1 if the next bits of the address are to be added. All addresses below an even
/// node share one slot.
struct Ipv4View {
  const std::uint32_t* top;  // 65,536 entries
  const std::uint32_t* middle;
  const std::uint32_t* records;
};

/// IPv6 address -> record. `first[b]` is the interval with the first address whose 16 highest bits are b; an address
/// with these bits lies in one of the intervals first[b]..first[b + 1].
struct Ipv6View {
  const std::uint32_t* first;  // 65,537 entries
  const Ipv6Address* starts;   // first address of each interval, ascending
  const std::uint32_t* records;
};

/// Number -> record, in two steps: `records[pages[number >> 8] * 256 + (number & 255)]`. Equal pages are shared.
struct PageView {
  const std::uint32_t* pages;
  const std::uint32_t* records;
};

/// A dimension with few different vectors. If several such dimensions have few combinations, each combination gets a
/// vector of its own, the intersection of the dimensions' vectors. `pages` then give summands; their sum is an index in
/// `combined`.
struct SmallView {
  enum class Use : std::uint8_t { none, combined, alone };  // none: all values have the same vector
  PageView pages;
  Use use;
};

/// Borrows everything. A record is identified by the index of its first word in `words`.
struct BitVectorView {
  Ipv4View source4, destination4;
  Ipv6View source6, destination6;
  SmallView kind, destination_port, source_port;
  SmallView place;  // in-port, out-port and fragment; see place_of()
  SmallView connection;
  const std::uint32_t* combined;  // records; null if no dimensions are combined
  std::uint32_t port_count;       // number of ports that `place` distinguishes
  std::uint32_t summary_words;    // summary words of each record
  const std::uint64_t* words;     // the records
  const VectorBlock* blocks;
  const Entry* entries;
};

}  // namespace penstock::classify
