// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// What a part of a JSON rule set has wrong. Functions that read a part return the path within it; their callers prepend
// the path to the part.

#pragma once

#include <string>
#include <tl/expected.hpp>
#include <utility>

namespace penstock::firewall::nftables {

struct Problem {
  bool unsupported = false;  // valid, as far as we know, but not supported; otherwise a mistake
  std::string message;
  std::string found;
  std::string expected;
  std::string path{};  // ".expr[2].match.left"
};

template <typename T>
using Checked = tl::expected<T, Problem>;

[[nodiscard]] inline tl::unexpected<Problem> mistake(std::string message, std::string found, std::string expected) {
  return tl::unexpected(Problem{false, std::move(message), std::move(found), std::move(expected)});
}
[[nodiscard]] inline tl::unexpected<Problem> unsupported(std::string message, std::string found = "",
                                                         std::string expected = "") {
  return tl::unexpected(Problem{true, std::move(message), std::move(found), std::move(expected)});
}

/// The problem of a part at `path`.
[[nodiscard]] inline tl::unexpected<Problem> within(const std::string& path, Problem problem) {
  problem.path.insert(0, path);
  return tl::unexpected(std::move(problem));
}

}  // namespace penstock::firewall::nftables
