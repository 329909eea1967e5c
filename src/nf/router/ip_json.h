// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// What `ip -j route` and `ip -j neigh` print (with -6 and -p too), as the words of what they print without -j: one
// reader understands both forms.
//
//     [{"dst":"default","gateway":"10.0.0.1","dev":"wan","flags":["onlink"]}, …]      default via 10.0.0.1 dev wan
//     onlink
//
// Several arrays may follow one another, as from several commands into one file.

#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "base/text_file.h"

namespace penstock::router {

/// Whether the text is JSON of `ip -j`: neither a route nor a neighbour begins with a bracket.
[[nodiscard]] bool is_ip_json(std::string_view text) noexcept;

/// An entry of the arrays, where it begins.
struct IpJsonEntry {
  std::string_view text;
  std::uint32_t line = 0, column = 0;
};

/// Walks the entries of `text`, which the caller keeps alive. An entry's own JSON is not looked at.
class IpJsonEntries {
 public:
  explicit IpJsonEntries(std::string_view text) noexcept : text_(text) {}
  /// False at the end, and where `wrong` then says what is wrong at `entry`.
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

/// The words of an entry. They stay until the next call, each at the entry's column.
class IpJsonWords {
 public:
  /// False: `why` says what is wrong with the entry.
  [[nodiscard]] bool read_route(const IpJsonEntry& entry, std::vector<Word>& words, std::string& why);
  [[nodiscard]] bool read_neighbour(const IpJsonEntry& entry, std::vector<Word>& words, std::string& why);

 private:
  std::deque<std::string> texts_;
};

}  // namespace penstock::router
