// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Reads several files of one kind, or the standard input ("-"), through one reader. Reports the errors of all files,
// including files that cannot be read, at once.

#pragma once

#include <span>
#include <string>
#include <utility>

#include "base/error.h"
#include "base/text_file.h"
#include "nf/router/ip_json.h"

namespace penstock::router {

/// `reader` has `read(text, name)`, and `finish()`, which returns the result of everything that it has read.
template <typename Reader>
[[nodiscard]] auto read_files(std::span<const std::string> paths, Reader reader) {
  Errors errors;
  for (const std::string& path : paths) {
    auto text = read_input(path);
    // `ip -j` prints a single line, however many entries there are.
    if (text && !is_ip_json(*text)) text = check_lines(*text, input_name(path)).map([&] { return std::move(*text); });
    if (text) {
      reader.read(*text, input_name(path));
    } else {
      append(errors, std::move(text).error());
    }
  }
  auto result = std::move(reader).finish();
  if (errors.empty()) return result;
  if (!result) append(errors, std::move(result).error());
  return decltype(result)(failure(std::move(errors)));
}

}  // namespace penstock::router
