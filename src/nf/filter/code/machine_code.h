// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Generated code of a set of programs, compiled once for each kind of device. Needs NVRTC (gpu/nvrtc.h), but no GPU.

#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

#include "base/error.h"
#include "nf/filter/code/generate.h"

namespace penstock::filter {

/// Code of more effort is not compiled. The compiler takes about a minute for this much; 1,024 filters of users have a
/// fifth of it.
inline constexpr std::size_t kMostEffort = std::size_t{4} << 20;

/// Thread-safe. Devices share it, and the matchers that it makes do not need it any more.
class MachineCode {
 public:
  /// Generates the code.
  MachineCode(std::span<const Program> programs, const GenerateOptions& options);

  [[nodiscard]] const GeneratedCode& generated() const noexcept { return code_; }
  [[nodiscard]] const GenerateOptions& options() const noexcept { return options_; }
  [[nodiscard]] std::size_t programs() const noexcept { return programs_; }
  [[nodiscard]] std::uint32_t reach() const noexcept { return reach_; }

  /// For devices of this compute capability. The first call for each compiles, which takes from a tenth of a second to
  /// some seconds. Fails if there is no NVRTC, or too much code. The machine code stays valid as long as this object.
  [[nodiscard]] Result<std::span<const char>> for_devices(int compute_major, int compute_minor);

 private:
  std::size_t programs_;
  GenerateOptions options_;
  std::uint32_t reach_;
  GeneratedCode code_;
  std::mutex mutex_;
  std::map<std::pair<int, int>, std::vector<char>> compiled_;
};

}  // namespace penstock::filter
