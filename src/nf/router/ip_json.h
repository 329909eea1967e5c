// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Converts the output of `ip -j route` and `ip -j neigh` (also with -6 and -p) to the words that they print without -j,
// so that one reader handles both forms.
//
//     [{"dst":"default","gateway":"10.0.0.1","dev":"wan","flags":["onlink"]}, …]
//     default via 10.0.0.1 dev wan onlink
//
// Several arrays may follow one another, for example the output of several commands in one file.

#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "base/text_file.h"

namespace penstock::router {

/// Whether the text is JSON of `ip -j`. Neither a route nor a neighbour in text form begins with a bracket.
[[nodiscard]] bool is_ip_json(std::string_view text) noexcept;

/// An entry of an array, with its position.
struct IpJsonEntry {
  std::string_view text;
  std::uint32_t line = 0, column = 0;
};

/// Iterates over the entries of `text`, which the caller must keep alive. Does not parse the JSON of an entry.
class IpJsonEntries {
 public:
  explicit IpJsonEntries(std::string_view text) noexcept : text_(text) {}
  /// False at the end, or on an error at `entry`, which `wrong()` then describes.
  bool next(IpJsonEntry& entry) noexcept;
  [[nodiscard]] std::string_view wrong() const noexcept { return wrong_; }

 private:
  void step() noexcept;
  void skip_spaces() noexcept;
  [[nodiscard]] bool at_end() const noexcept { return at_ == text_.size(); }
  bool stop(IpJsonEntry& entry, std::string_view wrong) noexcept;

  std::string_view text_;
  std::size_t at_ = 0;
  std::uint32_t line_ = 1, column_ = 1;
  bool in_array_ = false;
  bool needs_comma_ = false;
  std::string_view wrong_;
};

/// Makes the words of an entry. They are valid until the next call, and all have the entry's column.
class IpJsonWords {
 public:
  /// False on error, which `why` describes.
  [[nodiscard]] bool read_route(const IpJsonEntry& entry, std::vector<Word>& words, std::string& why);
  [[nodiscard]] bool read_neighbour(const IpJsonEntry& entry, std::vector<Word>& words, std::string& why);

 private:
  std::deque<std::string> texts_;
};

}  // namespace penstock::router
