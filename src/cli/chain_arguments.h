// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// What the commands share: how errors and warnings reach the user, and the exit codes that scripts rely on.

#pragma once

#include <CLI/App.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "config/chain_file.h"

namespace penstock::cli {

inline constexpr int kDone = 0;
inline constexpr int kFailed = 1;      // at run time
inline constexpr int kWrongUsage = 2;  // wrong usage or configuration

/// Each error on a line of stderr.
void print_errors(const Errors& errors);
/// What readers left out, as warnings on stderr, with a count at the end; nothing where nothing was.
void print_unsupported(const Errors& unsupported);

/// The options that `run`, `check` and `plan` share.
struct ChainArguments {
  std::string file;
  std::vector<std::string> sets;
  bool strict = false;

  void add_to(CLI::App& command);
  /// Reads the file with the overrides; errors are printed, and none comes back.
  [[nodiscard]] std::optional<config::LoadedChain> load(std::vector<config::Override> more = {},
                                                        bool any_processor = false) const;
};

}  // namespace penstock::cli
