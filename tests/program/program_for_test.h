// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The program as a shell runs it. Each test has its own folder, in which its commands run and `penstock` is the
// program; output files of runs are there too.

#pragma once

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "bundle.h"
#include "golden/capture_file.h"

namespace penstock {

namespace fs = std::filesystem;

[[nodiscard]] inline std::string program() {
  const auto here = bundle();
  return here ? (*here / "bin/penstock").string() : PENSTOCK_PROGRAM;
}
/// Ends in "/".
[[nodiscard]] inline std::string examples() { return (bundle().value_or(PENSTOCK_SOURCE_DIR) / "examples/").string(); }

class Program : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = (fs::temp_directory_path() / "penstock-program-XXXXXX").string();
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    folder_ = name;
    fs::copy_file(examples() + "gateway/lan.pcap", folder_ / "in.pcap");
    ::setenv("STATE_DIRECTORY", (folder_ / "kept").c_str(), 1);
    write("chain.yaml", "ports:\n  lan: {pcap: {read: in.pcap}}\n  wan: {pcap: {write: out.pcap}}\nchain: []\n");
  }
  void TearDown() override { fs::remove_all(folder_); }

  void write(const std::string& name, const std::string& text) const { std::ofstream(folder_ / name) << text; }
  [[nodiscard]] std::string read(const std::string& name) const {
    std::ifstream file(folder_ / name, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  [[nodiscard]] nlohmann::json json(const std::string& name) const { return nlohmann::json::parse(read(name)); }
  [[nodiscard]] std::vector<golden::Record> records(const std::string& name) const {
    return golden::read_capture_file(folder_ / name).records;
  }
  [[nodiscard]] bool exists(const std::string& name) const { return fs::exists(folder_ / name); }

  /// Runs a command line. Its output is in the files `out` and `err`. Returns the exit status: 124 if it exceeded the
  /// time limit.
  [[nodiscard]] int shell(const std::string& command) const {
    write("command", "penstock() { timeout 60 '" + program() + "' \"$@\"; }\n" + command + "\n");
    const int status =
        std::system(("cd '" + folder_.string() + "' && bash -o pipefail command >out 2>err </dev/null").c_str());
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }

  fs::path folder_;
};

}  // namespace penstock
