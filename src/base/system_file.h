// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Reads the small files by which Linux describes itself, below /proc and /sys.

#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>

#include "base/text_file.h"

namespace penstock {

/// Without its last line end; empty if it cannot be read.
[[nodiscard]] inline std::string system_file(const std::filesystem::path& path) {
  std::string text = read_text_file(path.string()).value_or(std::string());
  if (text.ends_with('\n')) text.pop_back();
  return text;
}

/// Calls `use(key, value)` for each line "key : value".
template <typename Use>
void for_each_pair(std::string_view text, Use use) {
  LineReader lines(text);
  for (Line line; lines.next(line);) {
    const std::size_t colon = line.text.find(':');
    if (colon != std::string_view::npos) use(trimmed(line.text.substr(0, colon)), trimmed(line.text.substr(colon + 1)));
  }
}

}  // namespace penstock
