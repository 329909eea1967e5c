// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// User mistakes as values. Readers continue after a mistake, so that one run reports all of them. Nothing is applied
// partially.

#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <vector>

namespace penstock {

/// A position in a file that the user wrote. Line and column start at 1; 0 means the whole file or the whole line.
struct Place {
  std::string file;
  std::uint32_t line = 0;
  std::uint32_t column = 0;
};

/// What went wrong, where, what was found there and what was expected. `found` and `expected` may be empty.
struct Error {
  Place place;
  std::string message;
  std::string found;
  std::string expected;
  std::size_t count = 1;  // number of mistakes that this error stands for: 23 for "… and 23 more"
};

using Errors = std::vector<Error>;

/// The number of mistakes that these errors stand for.
[[nodiscard]] std::size_t count_of(std::span<const Error> errors) noexcept;

template <typename T>
using Result = tl::expected<T, Errors>;

/// A value, and the constructs of its source that were skipped because they are not supported (for example a rule's
/// match extension, or a route type). They are reported to the user, and are errors with `--strict`.
template <typename T>
struct Read {
  T value{};
  Errors unsupported;
  /// Skipped constructs that do not affect any packet's verdict, such as a rule that only logs.
  Errors harmless{};
};

/// Formats an error as one line, with control bytes escaped: "rules.txt:3:7: unknown protocol: found 'tpc', expected
/// tcp, udp, icmp or a number".
[[nodiscard]] std::string to_string(const Error& error);

/// One line for each error.
[[nodiscard]] std::string to_string(const Errors& errors);

/// An operation on a file that the system or a library refused, and why: "out.pcap: cannot write: No space left on
/// device". An empty path is shown as ''.
[[nodiscard]] Error system_error(const std::string& path, std::string_view what, std::string_view reason);

[[nodiscard]] tl::unexpected<Errors> failure(Error error);
[[nodiscard]] tl::unexpected<Errors> failure(Errors errors);

void append(Errors& to, Errors more);

/// Sorts the errors by line within each file, and keeps the files in the order in which they first occur. Errors about
/// a whole file follow those about its lines.
[[nodiscard]] Errors in_file_order(Errors errors);

/// Escapes control characters (ASCII and C1), invisible characters and invalid UTF-8, so that text from a file can
/// neither control the terminal nor pass for a line of its own.
[[nodiscard]] std::string printable(std::string_view text);

/// `text` for an error's `found`: quoted, escaped by `printable`, and truncated to `limit` bytes.
[[nodiscard]] std::string in_quotes(std::string_view text, std::size_t limit = 60);

}  // namespace penstock
