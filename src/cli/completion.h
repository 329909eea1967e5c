// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Completion scripts for shells, made from the definitions of the commands. They need nothing but the shell: they do
// not run the program.

#pragma once

#include <CLI/App.hpp>
#include <string>

namespace penstock::cli {

[[nodiscard]] std::string bash_completion(const CLI::App& app);
[[nodiscard]] std::string zsh_completion(const CLI::App& app);
[[nodiscard]] std::string fish_completion(const CLI::App& app);

}  // namespace penstock::cli
