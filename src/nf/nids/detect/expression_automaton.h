// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// A regular expression as a nondeterministic automaton (K. Thompson, "Regular Expression Search Algorithm", 1968), for
// texts with several possible bytes per position, on which PCRE2 cannot run. It accepts everything that the expression
// matches, and more: of assertions it only knows the beginning and end of the text, lookarounds always hold, a
// backreference matches any bytes, and large repeat counts become unbounded. PCRE2 confirms each match.

#pragma once

#include <bitset>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "nf/nids/rules/buffer_match.h"

namespace penstock::nids {

class ExpressionAutomaton {
 public:
  static constexpr std::size_t kMostInstructions = 2048;
  using ByteSet = std::bitset<256>;

  struct Instruction {
    enum class Kind : std::uint8_t {
      bytes,  // consumes a byte of byte_set(first), goes to the next instruction
      split,  // goes to `first` and to `second`
      begin,  // goes to the next instruction at the beginning of the text
      end,    // the same at the end of the text: at most one byte follows
      match,
    };
    Kind kind = Kind::match;
    std::uint16_t first = 0, second = 0;
  };

  /// Empty if the expression cannot be parsed or is too long.
  [[nodiscard]] static std::optional<ExpressionAutomaton> of(const Pcre& pcre);

  [[nodiscard]] std::span<const Instruction> instructions() const noexcept { return instructions_; }
  [[nodiscard]] const ByteSet& byte_set(std::uint16_t index) const noexcept { return sets_[index]; }
  /// Whether matches can only begin at the beginning of the text.
  [[nodiscard]] bool is_anchored() const noexcept { return is_anchored_; }

 private:
  class Builder;
  ExpressionAutomaton() = default;

  std::vector<Instruction> instructions_;
  std::vector<ByteSet> sets_;
  bool is_anchored_ = false;
};

}  // namespace penstock::nids
