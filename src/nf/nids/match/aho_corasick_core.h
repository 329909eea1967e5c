// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Steps of the Aho-Corasick automaton, and the literals that end at a state. For host and device.

#pragma once

#include <cstdint>

#include "base/host_device.h"
#include "nf/nids/match/aho_corasick_layout.h"

namespace penstock::nids {

/// The state after `byte`. `class_of` and `next` are the view's, or copies in faster memory.
template <typename Entry>
[[nodiscard]] PENSTOCK_HOST_DEVICE inline std::uint32_t ac_step(const std::uint8_t* class_of, const Entry* next,
                                                                std::uint32_t classes, std::uint32_t state,
                                                                std::uint32_t byte) noexcept {
  return next[state * classes + class_of[byte]];
}

/// Calls `found(literal)` for each literal that ends at `end`, with the automaton in an accepting state. At least as
/// many bytes of text as the state is deep must precede `end`.
template <typename Entry, typename Found>
PENSTOCK_HOST_DEVICE inline void ac_report(const AhoCorasickView<Entry>& view, std::uint32_t state,
                                           const std::uint8_t* end, Found&& found) noexcept {
  std::uint32_t at = state - view.first_accepting;
  do {
    const AcAccepting accepting = view.accepting[at];
    for (std::uint32_t i = accepting.first; i < accepting.first + accepting.count; ++i) {
      const AcOutput output = view.outputs[i];
      bool equal = true;
      if (output.bytes != AcOutput::kExact) {
        const std::uint8_t* const text = end - output.length;
        for (std::uint32_t b = 0; b < output.length && equal; ++b) equal = text[b] == view.texts[output.bytes + b];
      }
      if (equal) found(output.literal);
    }
    at = accepting.suffix;
  } while (at != AcAccepting::kNone);
}

/// Calls `found(literal)` for each occurrence of each literal in [begin, end).
template <typename Entry, typename Found>
PENSTOCK_HOST_DEVICE inline void ac_scan(const AhoCorasickView<Entry>& view, const std::uint8_t* begin,
                                         const std::uint8_t* end, Found&& found) noexcept {
  std::uint32_t state = 0;
  for (const std::uint8_t* at = begin; at != end; ++at) {
    state = ac_step(view.class_of, view.next, view.classes, state, *at);
    if (state >= view.first_accepting) ac_report(view, state, at + 1, found);
  }
}

}  // namespace penstock::nids
