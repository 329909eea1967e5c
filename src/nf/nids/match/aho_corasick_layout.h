// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The Aho-Corasick automaton (Aho & Corasick 1975) as a DFA: a row of next states for each state, a column for each
// class of bytes that lead to the same states everywhere. State 0 is the root; those at which literals end come last.

#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace penstock::nids {

/// A literal that ends at a state.
struct AcOutput {
  std::uint32_t literal;
  std::uint32_t length;
  std::uint32_t bytes;  // where its own bytes are in `texts`, to be compared; kExact: the automaton has compared them
  static constexpr std::uint32_t kExact = 0xffff'ffff;
};

/// What ends at an accepting state: outputs of its own, and those of a state that is a suffix of it.
struct AcAccepting {
  std::uint32_t first = 0;
  std::uint32_t count = 0;
  std::uint32_t suffix = kNone;  // index of an accepting state
  static constexpr std::uint32_t kNone = 0xffff'ffff;
};

/// Borrows; passed by value to kernels. `Entry` is wide enough for a state.
template <typename Entry>
struct AhoCorasickView {
  const std::uint8_t* class_of = nullptr;  // of a byte
  const Entry* next = nullptr;             // [state * classes + class]
  const AcAccepting* accepting = nullptr;  // [state - first_accepting]
  const AcOutput* outputs = nullptr;
  const std::uint8_t* texts = nullptr;
  std::uint32_t classes = 1;
  std::uint32_t states = 1;
  std::uint32_t first_accepting = 1;
  std::uint32_t longest = 0;  // literal, in bytes
};

/// Owns them on the host.
struct AhoCorasickTables {
  std::vector<std::uint8_t> class_of;
  std::vector<std::uint16_t> narrow;  // rows, where 16 bits will do for a state; else
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
