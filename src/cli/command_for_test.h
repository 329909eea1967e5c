// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Runs a command in the test's process, and captures its output.

#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

namespace penstock::cli {

struct Outcome {
  int exit_code = -1;
  std::string out, err;
};

/// The outcome of `run`, which returns an exit code.
template <typename Run>
[[nodiscard]] Outcome outcome_of(Run run) {
  Outcome outcome;
  ::testing::internal::CaptureStdout();
  ::testing::internal::CaptureStderr();
  outcome.exit_code = run();
  outcome.out = ::testing::internal::GetCapturedStdout();
  outcome.err = ::testing::internal::GetCapturedStderr();
  return outcome;
}

/// The outcome of a subcommand that `add` adds; the first argument is its name.
[[nodiscard]] inline Outcome outcome_of_command(void (*add)(CLI::App&, int&),
                                                const std::vector<std::string>& arguments) {
  return outcome_of([&] {
    CLI::App app;
    int exit_code = -1;
    add(app, exit_code);
    app.parse(std::vector<std::string>(arguments.rbegin(), arguments.rend()));
    return exit_code;
  });
}

/// A temporary file with a path unique to this process. Removed by the destructor.
class TestFile {
 public:
  explicit TestFile(std::string_view name)
      : path_(::testing::TempDir() + "/" + std::to_string(::getpid()) + "_" + std::string(name)) {}
  TestFile(const TestFile&) = delete;
  TestFile& operator=(const TestFile&) = delete;
  ~TestFile() { std::remove(path_.c_str()); }

  [[nodiscard]] const std::string& path() const noexcept { return path_; }
  void write(std::string_view text) const { std::ofstream(path_) << text; }

 private:
  std::string path_;
};

}  // namespace penstock::cli
