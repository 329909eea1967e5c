// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Programs of the system that experiments start, without a shell. Each is in a process group of its own, so that
// Ctrl-C reaches only this process, which then ends them in order. If this process is killed, they get SIGTERM.

#pragma once

#include <sys/types.h>

#include <chrono>
#include <string>
#include <vector>

#include "base/error.h"

namespace penstock::experiments {

class Program {
 public:
  /// Starts it, with its standard output and errors in the file `output`. The error names the program. It gets SIGTERM
  /// when the calling thread ends.
  [[nodiscard]] static Result<Program> start(const std::vector<std::string>& words, const std::string& output);
  Program(Program&& other) noexcept;
  Program& operator=(Program&& other) noexcept;
  /// Ends it, and waits for that.
  ~Program();

  /// Whether it has ended within this time.
  [[nodiscard]] bool ended_within(std::chrono::milliseconds time) noexcept;
  /// Once it has ended: 0 if it did what it was asked to do.
  [[nodiscard]] int exit_code() const noexcept { return exit_code_; }

 private:
  explicit Program(pid_t pid) noexcept : pid_(pid) {}
  void finish() noexcept;

  pid_t pid_ = 0;  // 0: it has ended
  int exit_code_ = -1;
};

/// Runs a program to its end. The error has what it printed to `output`.
[[nodiscard]] Result<void> run_program(const std::vector<std::string>& words, const std::string& output);

/// Whether the search path has this program.
[[nodiscard]] bool is_installed(const std::string& program);

}  // namespace penstock::experiments
