// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Looks for a way to read a contested text on which a rule holds. A rule of one content has one if the content may be
// in the text; of several contents, those ways are tried that have each where it may be first. A regular expression is
// followed through all bytes at once. For what other options look at, segments that contradict each other are told
// apart: those of one sender agree, wherever they overlap.

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

  /// True where a reading was found on which `holds(Bytes)` is true: `bytes()` are it, until the next call.
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
  /// Of the last search for expressions: in InspectionBudget's units.
  [[nodiscard]] std::uint64_t work() const noexcept { return work_; }

 private:
  static constexpr unsigned kMostPlaces = 16;  // of the longest content

  /// From the reading that has been laid.
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
  /// Where the last content before an option was laid, if that is what a relative one counts from.
  [[nodiscard]] std::optional<std::size_t> end_before(std::span<const BufferMatch> options) const noexcept;

  // Parties: versions that agree wherever they overlap. Each is tried as the one that others have to agree with, which
  // join from the newest to the oldest or the other way round; then random orders, the same in each run.
  static constexpr std::size_t kMostFirst = stack::ContestedBytes::kMostVersions;
  static constexpr std::size_t kMostAtRandom = 64;
  void begin_parties(const ContestedText& text, const stack::StreamChunk& chunk) noexcept;
  /// Lays the next one over the text, that is read otherwise than those before. False: enough have been tried.
  bool next_party(const ContestedText& text) noexcept;
  void lay_party(const ContestedText& text) noexcept;
  [[nodiscard]] bool is_known() noexcept;

  /// Null where there is none that must be there.
  [[nodiscard]] static const Content* longest_content(std::span<const BufferMatch> options) noexcept;
  /// A reading that has `first` at the place, and each other content where it may be first: behind the one before it,
  /// or else anywhere. False where there is none.
  bool lay_contents(const ContestedText& text, std::span<const BufferMatch> options, const Content& first,
                    std::size_t place) noexcept;

  void lay_nothing(const ContestedText& text) noexcept;

  ContestedText::Reading reading_;
  ExpressionReader expressions_;
  std::uint64_t work_ = 0;
  static constexpr std::size_t kMostOptions = 64;
  static constexpr std::uint32_t kNotLaid = ~std::uint32_t{0};
  std::array<std::uint32_t, kMostOptions> content_ends_{};  // in the reading, of the rule's first options
  using Version = stack::ContestedBytes::Version;
  std::array<const Version*, stack::ContestedBytes::kMostVersions> versions_{}, order_{};  // the newest first
  std::size_t version_count_ = 0, tried_ = 0;
  std::array<std::uint64_t, 2 * kMostFirst + kMostAtRandom + 1> known_{};  // hashes of the readings so far
  std::size_t known_count_ = 0;
  std::minstd_rand random_;
};

/// The urgent marks of a chunk that are left out together in a text: all, none, each by itself, all others. Calls
/// `use(a bit for each of the chunk's marks)`.
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
