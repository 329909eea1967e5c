// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Manual pages, made from the definitions of the commands and the tables of parameters, in roff with the macros of
// man(7).

#pragma once

#include <CLI/App.hpp>
#include <string>
#include <vector>

#include "function/network_function.h"

namespace penstock::cli {

struct GeneratedFile {
  std::string path;  // below a folder of the caller's: "man/man1/penstock-run.1"
  std::string text;
};

/// penstock(1), and one page for each command. `date`: "2026-11-26".
[[nodiscard]] std::vector<GeneratedFile> command_pages(const CLI::App& app, const std::string& date);
/// penstock.yaml(5).
[[nodiscard]] GeneratedFile chain_file_page(function::NfKinds functions, const std::string& date);

}  // namespace penstock::cli
