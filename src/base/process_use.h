// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// What this process uses of the machine, as Linux says.

#pragma once

#include <cstdint>
#include <filesystem>

namespace penstock {

struct ProcessUse {
  double started_s = 0;  // Unix time
  double cpu_s = 0;      // of all threads, in user mode and in the kernel
  std::uint64_t resident_bytes = 0;
};

/// Zeros: unknown. `proc`: for tests.
[[nodiscard]] ProcessUse process_use(const std::filesystem::path& proc = "/proc");

}  // namespace penstock
