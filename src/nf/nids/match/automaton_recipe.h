// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The device stage that takes each packet through the Aho-Corasick automaton, as data: made from the automaton, and
// checked and read where somebody else made it.

#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/error.h"
#include "function/stage_recipe.h"
#include "nf/nids/match/aho_corasick_layout.h"

namespace penstock::nids {

/// The automaton's arrays in host memory. Borrows them.
struct AutomatonSpans {
  std::span<const std::uint8_t> class_of;
  std::span<const std::uint16_t> narrow;  // rows, or `wide`
  std::span<const std::uint32_t> wide;
  std::span<const AcAccepting> accepting;
  std::span<const AcOutput> outputs;
  std::span<const std::uint8_t> texts;
  std::uint32_t classes = 1;
  std::uint32_t states = 1;
  std::uint32_t longest = 0;

  [[nodiscard]] bool is_narrow() const noexcept { return !narrow.empty(); }
  /// `rows`: narrow or wide.
  template <typename Entry>
  [[nodiscard]] AhoCorasickView<Entry> view(std::span<const Entry> rows) const noexcept {
    return {class_of.data(), rows.data(), accepting.data(), outputs.data(),
            texts.data(),    classes,     states,           states - static_cast<std::uint32_t>(accepting.size()),
            longest};
  }
  [[nodiscard]] std::size_t bytes() const noexcept {
    return class_of.size_bytes() + narrow.size_bytes() + wide.size_bytes() + accepting.size_bytes() +
           outputs.size_bytes() + texts.size_bytes();
  }
};

[[nodiscard]] AutomatonSpans spans_of(const AhoCorasickTables& tables);
[[nodiscard]] function::StageRecipe recipe_of(const AutomatonSpans& automaton);

/// Only whether all parts are there.
[[nodiscard]] Result<AutomatonSpans> read_recipe(const function::StageRecipe& recipe);
/// Whether no scan leaves these tables or its packet, or takes long, for any packet.
[[nodiscard]] Result<void> check_recipe(const function::StageRecipe& recipe);

/// What a scan on a device reads and writes.
[[nodiscard]] Access scan_access() noexcept;

/// For the catalog.
[[nodiscard]] function::RemoteKernel remote_kernel() noexcept;

}  // namespace penstock::nids
