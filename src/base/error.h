// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// User mistakes as values. Readers go on after a mistake, so that one run shows all of them; nothing is half applied.

#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <vector>

namespace penstock {

/// A place in a file that the user wrote. Line and column count from 1; 0 means "the whole file" or "the whole line".
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
  std::size_t count = 1;  // how many mistakes it stands for: "… and 23 more" for 23
};

using Errors = std::vector<Error>;

/// How many mistakes they stand for.
[[nodiscard]] std::size_t count_of(std::span<const Error> errors) noexcept;

template <typename T>
using Result = tl::expected<T, Errors>;

/// A value together with the constructs of its source that are left out because no code supports them (a rule's match
/// extension, a route type). They are reported to the user, and are errors with `--strict`.
template <typename T>
struct Read {
  T value{};
  Errors unsupported;
  /// The same, where no packet's fate depends on them: a rule that only logs.
  Errors harmless{};
};

/// "rules.txt:3:7: unknown protocol: found 'tpc', expected tcp, udp, icmp or a number": one line, control bytes
/// escaped.
[[nodiscard]] std::string to_string(const Error& error);

/// One line for each error.
[[nodiscard]] std::string to_string(const Errors& errors);

/// What the system or a library refused to do with a file, and its reason: "out.pcap: cannot write: No space left on
/// device". An empty path is shown as ''.
[[nodiscard]] Error system_error(const std::string& path, std::string_view what, std::string_view reason);

[[nodiscard]] tl::unexpected<Errors> failure(Error error);
[[nodiscard]] tl::unexpected<Errors> failure(Errors errors);

void append(Errors& to, Errors more);

/// The same by their lines within each file, and the files in the order in which they come up: as one reads them. What
/// is of a whole file comes behind its lines.
[[nodiscard]] Errors in_file_order(Errors errors);

/// `text` with its control bytes escaped, of UTF-8 (C1) as of ASCII, characters that cannot be seen, and what is no
/// UTF-8: what comes out of a file
/// must not steer the terminal that it is printed on, nor look like a line of its own.
[[nodiscard]] std::string printable(std::string_view text);

/// `text` in quotes for an error's `found`: `printable`, and what is over `limit` bytes is cut.
[[nodiscard]] std::string in_quotes(std::string_view text, std::size_t limit = 60);

}  // namespace penstock
