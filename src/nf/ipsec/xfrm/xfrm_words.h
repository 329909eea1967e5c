// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Splits the output of `ip xfrm` into words. An object (an SA or a policy) starts with a line whose first word is
// `src`. Other line breaks and indentation do not matter, so pasted and piped output, and that of `ip -o`, read the
// same. Lines that start with # are skipped. No message contains a key, whatever the file contains.

#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/error_list.h"
#include "base/text_file.h"
#include "nf/ipsec/selection/selector.h"

namespace penstock::ipsec {

/// A word and its position.
struct XfrmWord {
  std::string_view text;
  std::uint32_t line = 0;
  std::uint32_t column = 0;
};

/// For an error's `found`: the word in quotes, or only its length if it may be a key or part of one.
[[nodiscard]] std::string quoted_unless_key(std::string_view word);

/// The most SAs or policies in a file: default of the parameter `most_entries`.
inline constexpr std::size_t kMostEntries = 250'000;
/// The most words in an object.
inline constexpr std::size_t kMostWords = 10'000;

/// Iterates over a text's objects and their words. After the first error in an object it yields no more words, and
/// numbers are 0 and addresses all zeros. Readers can therefore carry on and check `good` at the end of the object.
class XfrmWords {
 public:
  /// `object` names an object in messages: "SA". Borrows `text`.
  XfrmWords(std::string_view text, std::string file, std::string_view object, std::size_t most_objects);

  /// Advances to the next object. False at the end, or if there are too many objects, which is an error.
  [[nodiscard]] bool next_object();
  /// Whether the current object has no errors so far.
  [[nodiscard]] bool good() const noexcept { return good_; }
  [[nodiscard]] std::uint32_t line() const noexcept { return words_.front().line; }

  [[nodiscard]] bool at_end() const noexcept { return at_ == words_.size(); }
  /// The next word, or an empty one at the end.
  [[nodiscard]] XfrmWord peek() const noexcept { return at_end() ? XfrmWord{} : words_[at_]; }
  [[nodiscard]] XfrmWord take(std::string_view expected);
  /// Consumes the next word if it is `word`.
  bool accept(std::string_view word);
  void expect(std::string_view word);
  /// Parses a number, ignoring the remark in parentheses and the comma that `ip -s` appends.
  [[nodiscard]] std::uint64_t number(std::string_view what, std::uint64_t least, std::uint64_t most);
  [[nodiscard]] std::uint32_t number32(std::string_view what) {
    return static_cast<std::uint32_t>(number(what, 0, 0xffff'ffff));
  }
  [[nodiscard]] IpAddress address();
  /// Two words, a date and a time, or "-" for none. Returns seconds since 1970; the time is in this machine's time
  /// zone.
  [[nodiscard]] std::optional<std::int64_t> time();

  // Parts that SAs and policies share. The word that introduces the part has been consumed already.
  /// Starts at `src PREFIX`.
  [[nodiscard]] Selector selector();
  /// Reads "config:" or "current:" and the limits or counters after it.
  void lifetime(Lifetimes& lifetimes);
  /// VALUE/MASK. Whether packets without a mark match; packets here never have one.
  [[nodiscard]] bool mark_is_ours();
  /// Follows `crypto`: "offload parameters: dev DEVICE dir DIRECTION [mode MODE]".
  void offload();

  void error(const XfrmWord& at, std::string_view message, std::string_view expected);
  /// Like `error`, with the text for what was found.
  void error_found(const XfrmWord& at, std::string_view message, std::string found, std::string_view expected);
  /// Reports something valid but unsupported. Reading continues; `message` says what the consequence is.
  void unsupported(const XfrmWord& at, std::string_view message, std::string_view expected = {});
  [[nodiscard]] Place place(const XfrmWord& word) const { return {file_, word.line, word.column}; }

  [[nodiscard]] Errors errors() { return std::exchange(errors_, {}).take(); }
  [[nodiscard]] Errors all_unsupported() { return std::exchange(unsupported_, {}).take(); }

 private:
  void add_words(const Line& line);
  void limits(Lifetimes& lifetimes, std::uint64_t Lifetime::*limit, std::string_view unit);
  void expiries(Lifetimes& lifetimes, std::uint64_t Lifetime::*limit);
  [[nodiscard]] std::uint64_t limit();
  [[nodiscard]] std::uint8_t protocol();
  [[nodiscard]] IpPrefix prefix();
  [[nodiscard]] XfrmWord end() const noexcept;  // position just after the last word

  LineReader lines_;
  std::string file_;
  std::string_view object_;
  std::size_t most_objects_;
  std::size_t objects_ = 0;
  Line ahead_;  // first line of the next object
  bool has_ahead_ = false;
  std::vector<XfrmWord> words_;
  std::vector<Word> line_words_;
  std::size_t at_ = 0;
  bool good_ = true;
  ErrorList errors_;
  ErrorList unsupported_{ErrorList::kMostLeftOut};
};

}  // namespace penstock::ipsec
