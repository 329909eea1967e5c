// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Searches for a reading of a contested text that a rule matches. For a rule with one content, a reading exists if the
// content may be in the text. For several contents, it tries readings that place each one as early as possible. Regular
// expressions are followed through all alternative bytes at once. For all other options it tries combinations of
// segments: segments of one sender agree wherever they overlap, segments that contradict each other do not belong
// together.

#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <random>
#include <span>
#include <variant>

#include "nf/nids/detect/compiled_rule.h"
#include "nf/nids/detect/contested_text.h"
#include "nf/nids/detect/expression_reading.h"
#include "nf/nids/rules/buffer_match.h"

namespace penstock::nids {

class ContestedReader {
 public:
  using Bytes = std::span<const std::uint8_t>;

  /// True if it finds a reading for which `holds(Bytes)` is true. `bytes()` then returns that reading, until the next
  /// call.
  template <typename Holds>
  bool find(const ContestedText& text, const stack::StreamChunk& chunk, std::span<const BufferMatch> options,
            std::span<const CompiledRule::Expression> expressions, Holds&& holds) {
    work_ = 0;
    const bool begins_line = chunk.offset == 0;
    lay_nothing(text);
    if (find_by_expressions(text, options, expressions, begins_line, holds)) return true;
    if (const Content* const first = longest_content(options)) {
      auto place = text.find(first->bytes, first->nocase);
      for (unsigned tried = 0; place && tried < kMostPlaces; ++tried) {
        if (lay_contents(text, options, *first, *place)) {
          if (holds(bytes()) || find_by_expressions(text, options, expressions, begins_line, holds)) return true;
        }
        place = text.find(first->bytes, first->nocase, *place + 1);
      }
    }
    begin_parties(text, chunk);
    while (next_party(text)) {
      if (holds(bytes())) return true;
    }
    return false;
  }
  [[nodiscard]] Bytes bytes() const noexcept { return reading_.bytes(); }
  /// The work of the last `find` for expressions, in InspectionBudget's units.
  [[nodiscard]] std::uint64_t work() const noexcept { return work_; }

 private:
  static constexpr unsigned kMostPlaces = 16;  // places of the longest content that are tried

  /// Starts from the current reading.
  template <typename Holds>
  bool find_by_expressions(const ContestedText& text, std::span<const BufferMatch> options,
                           std::span<const CompiledRule::Expression> expressions, bool begins_line, Holds& holds) {
    for (const CompiledRule::Expression& expression : expressions) {
      const bool relative = std::get_if<Pcre>(&options[expression.option])->relative;
      const std::optional<std::size_t> begin = relative ? end_before(options.first(expression.option)) : 0;
      if (!begin) continue;
      const bool found =
          expressions_.find(expression.automaton, text, reading_, *begin, relative || begins_line, holds);
      work_ += expressions_.work();
      if (found) return true;
    }
    return false;
  }
  /// The end of the last content before an option in the reading, if a relative option counts from there.
  [[nodiscard]] std::optional<std::size_t> end_before(std::span<const BufferMatch> options) const noexcept;

  // A party is a set of versions that agree wherever they overlap. Each version in turn is the first of a party, and
  // others that agree join it from the newest to the oldest, or the reverse. After that come random orders, which are
  // the same on every run.
  static constexpr std::size_t kMostFirst = stack::ContestedBytes::kMostVersions;
  static constexpr std::size_t kMostAtRandom = 64;
  void begin_parties(const ContestedText& text, const stack::StreamChunk& chunk) noexcept;
  /// Makes a reading of the next party that differs from all readings so far. False: enough parties have been tried.
  bool next_party(const ContestedText& text) noexcept;
  void lay_party(const ContestedText& text) noexcept;
  [[nodiscard]] bool is_known() noexcept;

  /// Null if no content has to be present.
  [[nodiscard]] static const Content* longest_content(std::span<const BufferMatch> options) noexcept;
  /// Makes a reading with `first` at `place` and each other content as early as possible: after the one before it, or
  /// else anywhere. False if there is none.
  bool lay_contents(const ContestedText& text, std::span<const BufferMatch> options, const Content& first,
                    std::size_t place) noexcept;

  void lay_nothing(const ContestedText& text) noexcept;

  ContestedText::Reading reading_;
  ExpressionReader expressions_;
  std::uint64_t work_ = 0;
  static constexpr std::size_t kMostOptions = 64;
  static constexpr std::uint32_t kNotLaid = ~std::uint32_t{0};
  std::array<std::uint32_t, kMostOptions> content_ends_{};  // in the reading, by index of the option
  using Version = stack::ContestedBytes::Version;
  std::array<const Version*, stack::ContestedBytes::kMostVersions> versions_{}, order_{};  // newest first
  std::size_t version_count_ = 0, tried_ = 0;
  std::array<std::uint64_t, 2 * kMostFirst + kMostAtRandom + 1> known_{};  // hashes of the readings that were tried
  std::size_t known_count_ = 0;
  std::minstd_rand random_;
};

/// Calls `use(mask)` for each choice of the chunk's urgent bytes to leave out of a text, one bit per mark: all, none,
/// each one alone, and all but one.
template <typename Use>
void for_each_choice_of_urgent(const stack::StreamChunk& chunk, Use&& use) {
  std::uint32_t all = 0, marks = 0;
  for (std::size_t i = 0; i < chunk.urgent.size(); ++i) {
    const std::uint64_t offset = chunk.urgent[i].offset;
    if (offset < chunk.offset || offset >= chunk.offset + chunk.bytes.size()) continue;
    all |= std::uint32_t{1} << i;
    ++marks;
  }
  use(all);
  if (marks == 0) return;
  use(std::uint32_t{0});
  if (marks == 1) return;
  for (std::uint32_t rest = all; rest != 0; rest &= rest - 1) {
    const std::uint32_t one = rest & (~rest + 1);
    use(one);
    if (marks > 2) use(all & ~one);
  }
}

}  // namespace penstock::nids
