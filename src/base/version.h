// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The build's version and tools. The build writes these values (cmake/PenstockVersion.cmake) into a separate library,
// penstock::version, so that a new commit recompiles one file and relinks only what prints them.

#pragma once

#include <string_view>

namespace penstock {

struct BuildInfo {
  std::string_view version;     // "0.1.0"
  std::string_view commit;      // "1f2e3d4c5b6a", "1f2e3d4c5b6a-dirty" with changes, "unknown" outside git
  std::string_view compiler;    // "GNU 12.2.0"
  std::string_view cuda;        // the CUDA compiler, "13.0.88"; empty in a build without CUDA
  std::string_view build_type;  // "Release"
};

[[nodiscard]] const BuildInfo& build_info() noexcept;

}  // namespace penstock
