// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// A regular expression as a nondeterministic automaton (K. Thompson, "Regular Expression Search Algorithm", 1968), for
// texts that PCRE2 cannot be run on: those with several bytes at a place. It accepts all that the expression matches,
// and more: of assertions it knows where the text begins and ends, lookarounds hold anywhere, a reference to a group is
// any bytes, and what is repeated too often is repeated any number of times. PCRE2 has the last word.

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
      bytes,  // takes a byte of byte_set(first), goes to the next instruction
      split,  // goes to `first` and to `second`
      begin,  // goes to the next instruction where the text begins
      end,    // or ends: at most one byte follows
      match,
    };
    Kind kind = Kind::match;
    std::uint16_t first = 0, second = 0;
  };

  /// None: the expression is not understood, or is too long.
  [[nodiscard]] static std::optional<ExpressionAutomaton> of(const Pcre& pcre);

  [[nodiscard]] std::span<const Instruction> instructions() const noexcept { return instructions_; }
  [[nodiscard]] const ByteSet& byte_set(std::uint16_t index) const noexcept { return sets_[index]; }
  /// A match begins where the text does.
  [[nodiscard]] bool is_anchored() const noexcept { return is_anchored_; }

 private:
  class Builder;
  ExpressionAutomaton() = default;

  std::vector<Instruction> instructions_;
  std::vector<ByteSet> sets_;
  bool is_anchored_ = false;
};

}  // namespace penstock::nids
