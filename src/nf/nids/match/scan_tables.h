// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// What the scan of packets on a device searches for: the literals, in the tables of an engine. Built once on the host;
// every device gets a copy (device_literals.h).

#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <variant>

#include "nf/nids/match/aho_corasick_layout.h"
#include "nf/nids/match/hashed_filter_build.h"
#include "nf/nids/match/pattern_matcher.h"

namespace penstock::nids {

enum class ScanEngine : std::uint8_t {
  automatic,             // hashed_filter or aho_corasick_strips, whichever is faster for these literals
  hashed_filter,         // a few lanes of a warp share a packet
  aho_corasick_strips,   // the same; only for few literals of at most kMostStripLiteralBytes
  aho_corasick_packets,  // a thread for each packet, as in Chaurasia §IV
};

/// The longest literal for the automaton if threads scan packets in strips: they start it one byte less than this
/// before each strip.
inline constexpr std::uint32_t kMostStripLiteralBytes = 9;

/// The automaton of aho_corasick_packets.
struct PacketAutomaton {
  AhoCorasickTables tables;
};

struct ScanTables {
  std::variant<AhoCorasickTables, HashedFilterTables, PacketAutomaton> engine;

  /// "hashed filter, 30,000 literals, 128 KiB of bits".
  [[nodiscard]] std::string description() const;
};

/// `filter`: options for the hashed filter, if it is the engine. Fails if the engine's tables cannot be built.
[[nodiscard]] Result<ScanTables> build_scan_tables(std::span<const Literal> literals,
                                                   ScanEngine engine = ScanEngine::automatic,
                                                   const HashedFilterOptions& filter = {});

}  // namespace penstock::nids
