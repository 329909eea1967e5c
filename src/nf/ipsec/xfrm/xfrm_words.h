// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// What `ip xfrm` prints, as words. An object, an SA or a policy, begins with a line whose first word is `src`; where
// else its lines begin and end, and how they are indented, is no matter, so that what was pasted is read as what was
// piped, and `ip -o` as `ip`. Lines that begin with # are left out. No message has a key in it, whatever the file is
// like.

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

/// A word and its place.
struct XfrmWord {
  std::string_view text;
  std::uint32_t line = 0;
  std::uint32_t column = 0;
};

/// For an error's `found`: the word in quotes, or its length where it may be a key or a part of one.
[[nodiscard]] std::string quoted_unless_key(std::string_view word);

/// Most SAs, and most policies, of a file: the default of the parameter `most_entries`.
inline constexpr std::size_t kMostEntries = 250'000;
/// Most words of an object.
inline constexpr std::size_t kMostWords = 10'000;

/// Walks a text's objects, and the words of each. After the first mistake of an object there are no more words of it,
/// numbers are 0 and addresses all zeros: readers go on as if nothing were, and ask `good` at its end.
class XfrmWords {
 public:
  /// `object` is what one is called in messages: "SA". `text` is kept alive by the caller.
  XfrmWords(std::string_view text, std::string file, std::string_view object, std::size_t most_objects);

  /// On to the next object; false at the end, and where there are too many, which is an error.
  [[nodiscard]] bool next_object();
  /// Whether nothing is wrong with this one so far.
  [[nodiscard]] bool good() const noexcept { return good_; }
  [[nodiscard]] std::uint32_t line() const noexcept { return words_.front().line; }

  [[nodiscard]] bool at_end() const noexcept { return at_ == words_.size(); }
  /// The next word; an empty one at the end.
  [[nodiscard]] XfrmWord peek() const noexcept { return at_end() ? XfrmWord{} : words_[at_]; }
  [[nodiscard]] XfrmWord take(std::string_view expected);
  /// The next word if it is this one.
  bool accept(std::string_view word);
  void expect(std::string_view word);
  /// Without what `ip -s` has behind it in parentheses, and a comma.
  [[nodiscard]] std::uint64_t number(std::string_view what, std::uint64_t least, std::uint64_t most);
  [[nodiscard]] std::uint32_t number32(std::string_view what) {
    return static_cast<std::uint32_t>(number(what, 0, 0xffff'ffff));
  }
  [[nodiscard]] IpAddress address();
  /// Two words, of a date and a time, or "-": nothing. Seconds since 1970, of a time in this machine's zone.
  [[nodiscard]] std::optional<std::int64_t> time();

  // What SAs and policies have in common; the word that names it has been taken.
  /// From `src PREFIX` on.
  [[nodiscard]] Selector selector();
  /// "config:" or "current:" and what is behind it.
  void lifetime(Lifetimes& lifetimes);
  /// VALUE/MASK. Whether packets without a mark, as ours are, have it.
  [[nodiscard]] bool mark_is_ours();
  /// Of `crypto`: "offload parameters: dev DEVICE dir DIRECTION [mode MODE]".
  void offload();

  void error(const XfrmWord& at, std::string_view message, std::string_view expected);
  /// With words of one's own for what was found.
  void error_found(const XfrmWord& at, std::string_view message, std::string found, std::string_view expected);
  /// Of what is right and not supported. The object is read on; what comes of it is said in `message`.
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
  [[nodiscard]] XfrmWord end() const noexcept;  // the place behind the last word

  LineReader lines_;
  std::string file_;
  std::string_view object_;
  std::size_t most_objects_;
  std::size_t objects_ = 0;
  Line ahead_;  // the line that begins the next object
  bool has_ahead_ = false;
  std::vector<XfrmWord> words_;
  std::vector<Word> line_words_;
  std::size_t at_ = 0;
  bool good_ = true;
  ErrorList errors_;
  ErrorList unsupported_{ErrorList::kMostLeftOut};
};

}  // namespace penstock::ipsec
