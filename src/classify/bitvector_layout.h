// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The aggregated bit vectors (Lakshman & Stiliadis, SIGCOMM 1998; Baboescu & Varghese, SIGCOMM 2001), as host and
// device both see them. Each dimension of a key (an address, a port, …) is cut into the intervals that no entry's
// conditions part; all values of an interval share a vector with a bit for each entry, set where the entry matches as
// far as this dimension goes. The first bit that is set in all dimensions' vectors is the first match.
//
//   record of a vector:  | summary: a bit for each word that is not 0 | block number | block number | …
//   block:               | 8 words: 512 entries |      equal vectors share a record, equal blocks of any a block

#pragma once

#include <cstdint>

#include "base/ip_address.h"
#include "classify/rule.h"

namespace penstock::classify {

inline constexpr std::uint32_t kWordsPerBlock = 8;
inline constexpr std::uint32_t kEntriesPerBlock = 64 * kWordsPerBlock;
inline constexpr std::uint32_t kMaxDimensions = 6;

struct alignas(64) VectorBlock {
  std::uint64_t words[kWordsPerBlock];
};

/// IPv4 address -> record, in three steps of 16, 8 and 8 bits without a branch. A node of `top` and `middle` is the
/// slot where the next step begins, times 2, and 1 where the next bits of the address are to be added: all addresses
/// behind an even node share one slot.
struct Ipv4View {
  const std::uint32_t* top;  // 65,536
  const std::uint32_t* middle;
  const std::uint32_t* records;
};

/// IPv6 address -> record. `first[b]` is the interval that holds the first address whose 16 highest bits are b; the one
/// that holds an address lies in first[b]..first[b + 1].
struct Ipv6View {
  const std::uint32_t* first;  // 65,537
  const Ipv6Address* starts;   // of the intervals, ascending
  const std::uint32_t* records;
};

/// Number -> record, in two steps: `records[pages[number >> 8] * 256 + (number & 255)]`. Equal pages are shared.
struct PageView {
  const std::uint32_t* pages;
  const std::uint32_t* records;
};

/// A dimension of few different values. Where the values of several such dimensions make few pairs, triples …, these
/// have vectors of their own, which are the dimensions' vectors combined: `pages` then gives a summand of the number of
/// such a vector in `combined`.
struct SmallView {
  enum class Use : std::uint8_t { none, combined, alone };  // none: all its values have the same vector
  PageView pages;
  Use use;
};

/// Borrows. A record is named by its first word's index in `words`.
struct BitVectorView {
  Ipv4View source4, destination4;
  Ipv6View source6, destination6;
  SmallView kind, destination_port, source_port;
  SmallView place;                // in-port, out-port and fragment; see place_of()
  const std::uint32_t* combined;  // records; null where no dimension is combined
  std::uint32_t port_count;       // ports that `place` tells apart
  std::uint32_t summary_words;    // of each record
  const std::uint64_t* words;     // the records
  const VectorBlock* blocks;
  const Entry* entries;
};

}  // namespace penstock::classify
