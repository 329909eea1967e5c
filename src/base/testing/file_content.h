// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// What a file holds, for tests of code that writes files.

#pragma once

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

namespace penstock::testing {

/// The file's bytes; nothing if there is no such file.
[[nodiscard]] inline std::string content_of(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace penstock::testing
