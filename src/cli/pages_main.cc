// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// penstock_pages FOLDER: writes the manual pages and completion scripts to the folder. A program of the build.

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <exception>
#include <filesystem>
#include <string>
#include <vector>

#include "base/text_file.h"
#include "cli/completion.h"
#include "cli/manual.h"
#include "cli/program.h"
#include "nf/catalog.h"

namespace penstock::cli {
namespace {

/// Of the pages: SOURCE_DATE_EPOCH, so that a package can be built again with the same bytes, or today.
std::string date() {
  const char* const epoch = std::getenv("SOURCE_DATE_EPOCH");
  const std::time_t time = epoch != nullptr ? static_cast<std::time_t>(std::atoll(epoch)) : std::time(nullptr);
  return fmt::format("{:%Y-%m-%d}", fmt::gmtime(time));
}

int write_pages(const std::filesystem::path& folder) {
  const auto functions = nf::catalog();
  int exit_code = 0;
  CLI::App app;
  define_command_line(app, functions, {"penstock"}, exit_code);
  std::vector<GeneratedFile> files = command_pages(app, date());
  files.push_back(chain_file_page(functions, date()));
  files.push_back({"completions/penstock", bash_completion(app)});
  files.push_back({"completions/_penstock", zsh_completion(app)});
  files.push_back({"completions/penstock.fish", fish_completion(app)});
  for (const GeneratedFile& file : files) {
    const std::filesystem::path path = folder / file.path;
    std::filesystem::create_directories(path.parent_path());
    if (const auto written = write_text_file(path.string(), file.text); !written) {
      for (const Error& error : written.error()) fmt::print(stderr, "penstock_pages: {}\n", to_string(error));
      return 1;
    }
  }
  return 0;
}

}  // namespace
}  // namespace penstock::cli

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fputs("usage: penstock_pages FOLDER\n", stderr);
    return 2;
  }
  try {
    return penstock::cli::write_pages(argv[1]);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "penstock_pages: %s\n", error.what());
    return 1;
  }
}
