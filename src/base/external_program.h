// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Runs a program of the system and waits for its end: bounded in time, output and memory.

#pragma once

#include <chrono>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace penstock {

struct ProgramLimits {
  std::chrono::milliseconds time{30'000};
  std::size_t output_bytes = std::size_t{256} << 20;
  std::size_t memory_bytes = std::size_t{4} << 30;  // of each process
};

struct ProgramOutput {
  int exit_code = 0;  // 128 + N: ended by signal N
  std::string text;
  std::string messages;  // of its standard error, at most 64 KiB
};

/// Runs `words`, the name of a program and its arguments, with `input` as its standard input. The program is one of the
/// system's folders (/usr/sbin …), whatever PATH says, and gets a minimal environment. An error: it could not be
/// started, or exceeded a limit; then it is killed, with the programs that it has started.
[[nodiscard]] Result<ProgramOutput> run_external_program(const std::vector<std::string>& words, std::string_view input,
                                                         const ProgramLimits& limits);

}  // namespace penstock
