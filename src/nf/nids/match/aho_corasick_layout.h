// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The Aho-Corasick automaton (Aho & Corasick 1975) as a DFA: one row of next states per state, with one column per byte
// class; bytes that always lead to the same states form a class. State 0 is the root; accepting states come last.

#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace penstock::nids {

/// A literal that ends at an accepting state.
struct AcOutput {
  std::uint32_t literal;
  std::uint32_t length;
  std::uint32_t bytes;  // offset in `texts` of its bytes, which must be compared; kExact: the automaton has compared
                        // them
  static constexpr std::uint32_t kExact = 0xffff'ffff;
};

/// The literals that end at an accepting state: its own outputs, and those of its longest accepting suffix.
struct AcAccepting {
  std::uint32_t first = 0;
  std::uint32_t count = 0;
  std::uint32_t suffix = kNone;  // index of another accepting state
  static constexpr std::uint32_t kNone = 0xffff'ffff;
};

/// Borrows; passed by value to kernels. `Entry` is wide enough for a state number.
template <typename Entry>
struct AhoCorasickView {
  const std::uint8_t* class_of = nullptr;  // byte class of each byte
  const Entry* next = nullptr;             // [state * classes + class]
  const AcAccepting* accepting = nullptr;  // [state - first_accepting]
  const AcOutput* outputs = nullptr;
  const std::uint8_t* texts = nullptr;
  std::uint32_t classes = 1;
  std::uint32_t states = 1;
  std::uint32_t first_accepting = 1;
  std::uint32_t longest = 0;  // longest literal, in bytes
};

/// Owns the tables on the host.
struct AhoCorasickTables {
  std::vector<std::uint8_t> class_of;
  std::vector<std::uint16_t> narrow;  // rows, if 16 bits are enough for a state; else `wide`
  std::vector<std::uint32_t> wide;
  std::vector<AcAccepting> accepting;
  std::vector<AcOutput> outputs;
  std::vector<std::uint8_t> texts;
  std::uint32_t classes = 1;
  std::uint32_t states = 1;
  std::uint32_t longest = 0;
  std::uint32_t literals = 0;

  [[nodiscard]] bool is_narrow() const noexcept { return !narrow.empty(); }
  [[nodiscard]] std::size_t bytes() const noexcept;
  template <typename Entry>
  [[nodiscard]] AhoCorasickView<Entry> view() const noexcept;
};

}  // namespace penstock::nids
