// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "nf/filter/code/machine_code.h"

#include <string>

#include "gpu/nvrtc.h"

namespace penstock::filter {

MachineCode::MachineCode(std::span<const Program> programs, const GenerateOptions& options)
    : programs_(programs.size()),
      options_(options),
      reach_(filter::reach(programs)),
      code_(generate(programs, options)) {}

Result<std::span<const char>> MachineCode::for_devices(int compute_major, int compute_minor) {
  if (code_.effort > kMostEffort) {
    return failure(Error{{},
                         "the BPF programs are too long to generate code for all of them",
                         std::to_string(code_.text.size() >> 10) + " KiB of code",
                         "fewer or shorter programs; the engine gpu takes them"});
  }
  const std::lock_guard lock(mutex_);
  std::vector<char>& code = compiled_[{compute_major, compute_minor}];
  if (code.empty()) {
    auto compiled = gpu::compile_cuda(code_.text, "filters.cu", compute_major, compute_minor);
    if (!compiled) return tl::unexpected(std::move(compiled.error()));
    code = std::move(*compiled);
  }
  return std::span<const char>(code);
}

}  // namespace penstock::filter
