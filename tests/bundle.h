// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Where tests find files: in the bundle of `make dist` that contains them, or else in the source tree.

#pragma once

#include <filesystem>
#include <optional>
#include <system_error>

namespace penstock {

/// The bundle that contains this program; empty if none does.
[[nodiscard]] inline std::optional<std::filesystem::path> bundle() {
  std::error_code none;
  auto found = std::filesystem::read_symlink("/proc/self/exe", none).parent_path().parent_path();
  if (!std::filesystem::is_directory(found / "tests/golden", none)) return std::nullopt;
  return found;
}

}  // namespace penstock
