// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// What the scan of packets on a device searches for: the literals, in the tables of the engine that is faster for them.
// Built once on the host; every device gets a copy (device_literals.h).

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
  automatic,
  aho_corasick,  // only for literals of at most kMostAutomatonLiteralBytes
  hashed_filter,
};

/// The longest literal for the automaton. Device threads scan a packet in strips, and start the automaton one byte less
/// than this before each strip.
inline constexpr std::uint32_t kMostAutomatonLiteralBytes = 9;

struct ScanTables {
  std::variant<AhoCorasickTables, HashedFilterTables> engine;

  /// "hashed filter, 30,000 literals, 128 KiB of bits".
  [[nodiscard]] std::string description() const;
};

/// `filter`: options for the hashed filter, if it is the engine. Fails if the engine's tables cannot be built.
[[nodiscard]] Result<ScanTables> build_scan_tables(std::span<const Literal> literals,
                                                   ScanEngine engine = ScanEngine::automatic,
                                                   const HashedFilterOptions& filter = {});

}  // namespace penstock::nids
