// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Compiles CUDA C++ at run time, with NVIDIA's NVRTC. The library is part of the CUDA toolkit and is loaded when it is
// first needed, so programs run without it. Thread-safe.

#pragma once

#include <string>
#include <vector>

#include "base/error.h"

namespace penstock::gpu {

/// Whether the library can be used. `version` is "13.0"; `path` is the file; `reason` is one sentence with the places
/// that were searched, if it cannot be used.
struct NvrtcStatus {
  bool available = false;
  std::string version;
  std::string path;
  std::string reason;
};
[[nodiscard]] NvrtcStatus nvrtc_status();

/// Compiles a complete source text for devices of this compute capability (9 and 0 for "9.0"). The result is machine
/// code for Module (module.h). The error has the compiler's log. `name` stands for the file name in it.
[[nodiscard]] Result<std::vector<char>> compile_cuda(const std::string& source, const std::string& name,
                                                     int compute_major, int compute_minor,
                                                     const std::vector<std::string>& more_options = {});

}  // namespace penstock::gpu
