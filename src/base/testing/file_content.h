// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Reads files back, for tests of code that writes them.

#pragma once

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

namespace penstock::testing {

/// The file's bytes; empty if the file does not exist.
[[nodiscard]] inline std::string content_of(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace penstock::testing
