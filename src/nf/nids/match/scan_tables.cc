// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "nf/nids/match/scan_tables.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "nf/nids/match/aho_corasick_build.h"

namespace penstock::nids {

namespace {

/// Up to this size, the automaton's rows are in shared memory, and loading them takes a block no longer than loading
/// the filter's bits.
constexpr std::size_t kMostRowBytes = 32 << 10;

bool fits_strips(std::span<const Literal> literals) {
  return std::all_of(literals.begin(), literals.end(),
                     [](const Literal& literal) { return literal.bytes.size() <= kMostStripLiteralBytes; });
}

std::string text_of(const AhoCorasickTables& automaton) {
  return fmt::format("Aho-Corasick, {} literals, {} states, {} KiB", automaton.literals, automaton.states,
                     (automaton.bytes() + 1023) / 1024);
}

}  // namespace

std::string ScanTables::description() const {
  if (const auto* const automaton = std::get_if<AhoCorasickTables>(&engine)) return text_of(*automaton);
  if (const auto* const automaton = std::get_if<PacketAutomaton>(&engine))
    return text_of(automaton->tables) + ", a thread for each packet";
  const auto& filter = std::get<HashedFilterTables>(engine);
  return fmt::format("hashed filter, {} literals, {} KiB of bits", filter.literals, filter.bit_bytes() / 1024);
}

Result<ScanTables> build_scan_tables(std::span<const Literal> literals, ScanEngine engine,
                                     const HashedFilterOptions& filter) {
  if (engine == ScanEngine::aho_corasick_packets) {
    return build_aho_corasick(literals).map(
        [](AhoCorasickTables tables) { return ScanTables{PacketAutomaton{std::move(tables)}}; });
  }
  if (engine != ScanEngine::hashed_filter && fits_strips(literals)) {
    auto automaton = build_aho_corasick(literals);
    const bool requested = engine == ScanEngine::aho_corasick_strips;
    if (!automaton && requested) return tl::unexpected(std::move(automaton.error()));
    const bool possible = automaton && automaton->is_narrow();
    if (possible && (requested || automaton->narrow.size() * sizeof(automaton->narrow[0]) <= kMostRowBytes)) {
      return ScanTables{std::move(*automaton)};
    }
  }
  if (engine == ScanEngine::aho_corasick_strips) {
    return failure(Error{{},
                         "Aho-Corasick in strips is for few short literals",
                         fmt::format("{} literals", literals.size()),
                         fmt::format("literals of at most {} bytes, and 65,535 states", kMostStripLiteralBytes)});
  }
  auto filtered = build_hashed_filter(literals, filter);
  if (!filtered) return tl::unexpected(std::move(filtered.error()));
  return ScanTables{std::move(*filtered)};
}

}  // namespace penstock::nids
