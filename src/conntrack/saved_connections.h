// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The file in which a run leaves its connections for the next one: text, a line for each connection after a line with
// the version, the time and their number. All of it is checked on reading; a file with one mistake gives nothing.
//
//   penstock-connections version=2 saved_ms=1700000000123 connections=0000000001
//   protocol=6 timeout_ms=431990000 src=10.0.0.1 dst=192.0.2.7 sport=40000 dport=443 status=6 mark=0
//   reply_src=… reply_dst=… reply_sport=… reply_dport=…  (on the same line, of translated connections)
//   state=ESTABLISHED original=… reply=… last=…          (on the same line, of TCP)

#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "conntrack/record.h"

namespace penstock::conntrack {

/// Whether a file with this beginning is one of these, of any version.
[[nodiscard]] bool is_saved_connections(std::string_view beginning) noexcept;

/// Of the format: what is written, and the only one that is read.
inline constexpr std::uint64_t kSavedVersion = 2;

/// Appends its line.
void append_saved(std::string& text, const SavedConnection& saved);

class SavedConnectionsWriter {
 public:
  /// `most_bytes`: what a reader takes. More connections than fit are left out.
  explicit SavedConnectionsWriter(std::size_t most_bytes);

  void add(const SavedConnection& saved);
  /// So many whole lines that `append_saved` has made. All of them are left out if they do not fit.
  void add_lines(std::string_view lines, std::uint64_t connections);
  /// The whole text. `now_ms`: since 1970.
  [[nodiscard]] std::string finish(std::uint64_t now_ms);
  [[nodiscard]] std::uint64_t written() const noexcept { return written_; }
  [[nodiscard]] std::uint64_t left_out() const noexcept { return left_out_; }

 private:
  const std::size_t most_bytes_;
  std::string text_;
  std::string line_;
  std::uint64_t written_ = 0, left_out_ = 0;
};

/// The connections whose time is not over at `now_ms`. If the clock has been set back, no time has passed. `name`: of
/// the file, for errors. Time and memory are proportional to the text.
[[nodiscard]] Result<std::vector<SavedConnection>> read_saved_connections(std::string_view text,
                                                                          const std::string& name,
                                                                          std::uint64_t now_ms);

}  // namespace penstock::conntrack
