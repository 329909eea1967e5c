// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Looks for a reading of a contested text in which a regular expression matches. At each contested place those bytes
// are tried with which a match goes on (PCRE2's partial matching), so that an expression is followed as a content is,
// whichever versions its bytes are of.
//
//   /ID-[0-9]+;/     I D - {4,x} {2,#} ;
//                    begins to match ─▶ "ID-4" goes on, "ID-x" does not ─▶ "ID-42;" matches
//
// What may follow seldom depends on which of several bytes an expression has taken ("ID-4", "ID-5"): of matches that
// began at one place and go on at another, one is tried; if that finds nothing, a few.

#pragma once

#include <array>
#include <bitset>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "nf/nids/detect/contested_text.h"
#include "nf/nids/detect/pcre_program.h"

namespace penstock::nids {

class ExpressionReader {
 public:
  using Bytes = std::span<const std::uint8_t>;

  /// Takes all of its memory.
  ExpressionReader();

  /// So many runs of expressions the searches may take from now on.
  void allow(unsigned runs) noexcept { runs_left_ = runs; }

  /// What is laid over the reading stays. `match(Bytes subject, from, goes_on)` gives where the expression, which looks
  /// at the text from `begin` on, matches in the subject, or begins to where that goes on. True where `holds(Bytes)` is
  /// true for a reading in which the expression matches: `reading` is that. Else it is as it was.
  template <typename Match, typename Holds>
  bool find(const ContestedText& text, ContestedText::Reading& reading, std::size_t begin, Match&& match,
            Holds&& holds) {
    find_places(text, reading, begin);
    if (place_count_ == 0) return false;
    return find(text, reading, begin, Alike::one, match, holds) ||
           find(text, reading, begin, Alike::some_of_each_byte, match, holds);
  }

 private:
  /// How many matches are tried that begin at one place and go on at another: of all, or by the byte that they took
  /// last.
  enum class Alike : std::uint8_t { one, some_of_each_byte };

  template <typename Match, typename Holds>
  bool find(const ContestedText& text, ContestedText::Reading& reading, std::size_t begin, Alike alike, Match& match,
            Holds& holds) {
    using Outcome = PcreProgram::Outcome;
    tried_anew_.reset();
    tried_alike_.fill(0);
    choices_[0] = {.place = 0, .from = begin};
    for (std::size_t depth = 1; depth > 0;) {
      Choice& choice = choices_[depth - 1];
      const std::size_t next = choice.place + 1;
      const bool is_last = next == place_count_;
      if (!choose_next(text, reading, places_[choice.place], choice)) {
        // With each byte that a match goes on with all has been tried. What follows one without is the same whichever
        // it is, and whatever came before.
        if (choice.ends && !is_last && !tried_anew_[next]) {
          tried_anew_.set(next);
          choice = {.place = next, .from = places_[next]};
        } else {
          --depth;
        }
        continue;
      }
      if (runs_left_ == 0) break;
      --runs_left_;
      const std::size_t end = is_last ? text.size() : places_[next];
      const PcreProgram::Match found =
          match(reading.bytes().subspan(begin, end - begin), choice.from - begin, !is_last);
      if (found.outcome == Outcome::failed) break;
      if (found.outcome == Outcome::match && holds(reading.bytes())) return true;
      if (found.outcome == Outcome::no_match) choice.ends = true;
      if (found.outcome == Outcome::no_match || is_last) continue;
      // After a match on which the rule does not hold, another one may begin.
      const std::size_t after = found.outcome == Outcome::match ? 1 : 0;
      const std::size_t from = begin + found.begin + after;
      if (tried_enough(alike, next, from, reading.bytes()[places_[choice.place]])) continue;
      choices_[depth++] = {.place = next, .from = from};
    }
    for (std::size_t i = 0; i < place_count_; ++i) reading.choose(places_[i], text.bytes()[places_[i]]);
    return false;
  }

  struct Choice {
    std::size_t place = 0, from = 0;  // index of the place; where a match may begin in the text
    std::uint16_t tried = 0;          // 1: the buffer's own byte; then each other up to the byte `tried - 2`
    bool ends = false;                // with one of the bytes, no match goes on
  };

  /// Of matches that begin at `from` and have come to a place. Counts this one.
  bool tried_enough(Alike alike, std::size_t place, std::size_t from, std::uint8_t last_byte) noexcept;
  /// The contested ones from `begin` on that nothing is laid over.
  void find_places(const ContestedText& text, const ContestedText::Reading& reading, std::size_t begin) noexcept;
  /// Puts the next byte of its place into the reading. False: there is none, and the buffer's own is there again.
  static bool choose_next(const ContestedText& text, ContestedText::Reading& reading, std::size_t at,
                          Choice& choice) noexcept;

  std::vector<std::uint32_t> places_;
  std::size_t place_count_ = 0;
  std::vector<Choice> choices_;                          // of the places up to the one that is tried
  std::bitset<ContestedText::kMostBytes> tried_anew_{};  // places at which no match had begun before
  static constexpr unsigned kTriedBits = 15;
  std::array<std::uint8_t, 1 << kTriedBits> tried_alike_{};  // by a hash of what is alike
  unsigned runs_left_ = 0;
};

}  // namespace penstock::nids
