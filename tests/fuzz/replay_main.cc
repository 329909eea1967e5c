// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The main() of fuzzers without libFuzzer: passes each file on the command line, and each file in each folder there, to
// the fuzzer once. So the saved corpora are a regression test of every build. -megabytes=N and -seconds=N set the
// limits for an input (cost_limits.h).

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include "fuzz/cost_limits.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace {

std::vector<std::filesystem::path> files_of(const std::filesystem::path& argument) {
  if (!std::filesystem::is_directory(argument)) return {argument};
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(argument))
    if (entry.is_regular_file()) files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  return files;
}

/// If the argument is a limit, sets it and returns true.
bool is_limit(std::string_view argument, penstock::fuzz::CostLimits& limits) {
  const std::size_t equals = argument.find('=');
  const std::string_view name = argument.substr(0, equals);
  if (!argument.starts_with('-') || equals == std::string_view::npos) return false;
  const unsigned long value = std::strtoul(argument.data() + equals + 1, nullptr, 10);
  if (name == "-megabytes") limits.bytes = std::size_t{value} << 20;
  if (name == "-seconds") limits.seconds = static_cast<unsigned>(value);
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  std::size_t replayed = 0;
  penstock::fuzz::CostLimits limits;
  for (int i = 1; i < argc; ++i) {
    if (is_limit(argv[i], limits)) continue;
    for (const auto& path : files_of(argv[i])) {
      std::ifstream file(path, std::ios::binary);
      if (!file) {
        std::fprintf(stderr, "%s: cannot be read\n", path.c_str());
        return 1;
      }
      const std::string bytes{std::istreambuf_iterator<char>(file), {}};
      penstock::fuzz::begin_input(path.c_str(), limits);
      LLVMFuzzerTestOneInput(reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size());
      ++replayed;
    }
  }
  std::printf("%zu inputs replayed\n", replayed);
  // Without a corpus, the test could not fail.
  return replayed > 0 ? 0 : 1;
}
