// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// What manual pages and completion scripts say of an option.

#pragma once

#include <CLI/App.hpp>
#include <cstdint>
#include <string>
#include <vector>

namespace penstock::cli {

/// The value of an option.
struct Value {
  enum class Kind : std::uint8_t { none, word, file, folder, socket } kind = Kind::none;
  std::string name{};                  // "N", "FILE"
  std::vector<std::string> choices{};  // if it is one of a list
  bool optional = false;               // --watch [SECONDS]
};
[[nodiscard]] Value value_of(const CLI::Option& option);

/// Of an option that is no positional argument: {"-q", "--quiet"}
[[nodiscard]] std::vector<std::string> names_of(const CLI::Option& option);

}  // namespace penstock::cli
