// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Searches for readings of a contested text in which a regular expression matches. Its automaton runs through the text
// with all possible bytes of each position at once, and the recorded path tells which bytes a match took. So
// expressions are found like contents, whichever versions their bytes belong to.
//
//   /ID-[0-9]+;/     I D - {4,x} {2,#} ;       after `4` and after `2` it is in one state, after `x` and `#` in none

#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "nf/nids/detect/contested_text.h"
#include "nf/nids/detect/expression_automaton.h"

namespace penstock::nids {

class ExpressionReader {
 public:
  using Bytes = std::span<const std::uint8_t>;

  /// Allocates all of its memory.
  ExpressionReader();

  /// Bytes that are already chosen in `reading` are kept. The expression is applied from `begin` on; `begins_line` says
  /// whether a line begins there. True if `holds(Bytes)` is true for a reading in which the expression may match;
  /// `reading` then is that reading. Otherwise `reading` is unchanged.
  template <typename Holds>
  bool find(const ExpressionAutomaton& expression, const ContestedText& text, ContestedText::Reading& reading,
            std::size_t begin, bool begins_line, Holds&& holds) {
    start(expression, begin, begins_line);
    for (unsigned found = 0; found < kMostCandidates && next_match(text, reading);) {
      if (choose(text, reading)) {
        ++found;
        if (holds(reading.bytes())) return true;
        restore(text, reading);
      }
    }
    return false;
  }
  /// The cost of the last search; one unit is about a nanosecond.
  [[nodiscard]] std::uint64_t work() const noexcept { return work_; }

 private:
  static constexpr unsigned kMostCandidates = 32;
  static constexpr std::size_t kMostSteps = std::size_t{1} << 18;
  static constexpr std::uint32_t kNone = ~std::uint32_t{0};

  /// A byte that an instruction has consumed.
  struct Step {
    std::uint32_t before = kNone;  // previous step
    std::uint16_t instruction = 0;
  };

  void start(const ExpressionAutomaton& expression, std::size_t begin, bool begins_line) noexcept;
  /// Moves on to the next match of the expression. False: there is none, or the steps are used up.
  bool next_match(const ContestedText& text, const ContestedText::Reading& reading) noexcept;
  void follow(std::uint16_t instruction, std::uint32_t before, const ContestedText& text,
              const ContestedText::Reading& reading) noexcept;
  [[nodiscard]] bool takes(std::uint16_t instruction, const ContestedText& text,
                           const ContestedText::Reading& reading) const noexcept;
  /// Puts the match's bytes into the reading. False if the match has no contested byte.
  bool choose(const ContestedText& text, ContestedText::Reading& reading) const noexcept;
  void restore(const ContestedText& text, ContestedText::Reading& reading) const noexcept;

  const ExpressionAutomaton* expression_ = nullptr;
  std::size_t begin_ = 0, at_ = 0;
  bool begins_line_ = false;
  std::vector<Step> steps_;
  std::size_t step_count_ = 0;
  std::size_t place_begin_ = 0, place_end_ = 0;  // the steps at the previous position
  std::uint32_t match_ = kNone;                  // last step of the match
  bool has_match_ = false;
  std::array<std::uint32_t, ExpressionAutomaton::kMostInstructions + 1> visited_{};  // position of the last visit, plus
                                                                                     // 1
  std::array<std::uint16_t, 2 * ExpressionAutomaton::kMostInstructions + 2> waiting_{};
  std::uint64_t work_ = 0;
};

}  // namespace penstock::nids
