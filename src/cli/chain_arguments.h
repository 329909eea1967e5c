// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// What the commands share: how errors and warnings reach the user, and the exit codes that scripts rely on.

#pragma once

#include <CLI/App.hpp>
#include <CLI/Validators.hpp>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "config/chain_file.h"

namespace penstock::cli {

inline constexpr int kDone = 0;
inline constexpr int kFailed = 1;      // at run time
inline constexpr int kWrongUsage = 2;  // wrong usage or configuration

/// Each error on a line of stderr.
void print_errors(const Errors& errors);
/// The same, and the exit code of wrong usage or configuration. Where they are very many and not `all` is asked for,
/// those alike are told once.
[[nodiscard]] int refuse(const Errors& errors, bool all = true);
/// The same, and the exit code of what fails at run time.
[[nodiscard]] int fail(const Errors& errors);
/// For a command that asks about what is in `files`, those of `option`: the standard input ("-") can be one of them,
/// and then what is asked (`questions`, by their name) must be arguments. Else it would be read for both.
[[nodiscard]] Errors check_stdin(std::string_view option, std::span<const std::string> files, bool asked_by_arguments,
                                 std::string_view questions);
/// What of the chain file and of the files that it names is not heeded, on stderr; nothing where all is. Where that is
/// very much, what is alike (but for its place) is told once, with how often it is there; all of it on request.
void print_warnings(const config::LoadedChain& loaded, bool all = false);
/// At the end of a command, on stderr: what readers left out, by file and reason, with counts. Nothing where nothing
/// is.
void print_left_out(const Errors& left_out);

/// Mistakes in the user's rules, each on a line of stderr as print_warnings has it, and that these rules are left out.
void print_mistakes(const Errors& mistakes, bool all = false);

/// What has come of a run: `text`, if any, on the standard output, or on stderr where that is taken by an output of the
/// run; then its errors, and that `text` could not be written. Returns the exit code.
[[nodiscard]] int print_results(std::string_view text, bool stdout_is_taken, Errors errors);

/// For an option's value: a whole number, or an error that says so. CLI11's own take -1 for the greatest of all.
[[nodiscard]] CLI::Validator whole_number(std::uint64_t least, std::uint64_t most);

/// For an option's value: anything but '', which scripts pass where a variable is not set. `expected` names the value.
[[nodiscard]] CLI::Validator not_empty(std::string_view expected);

/// The options that `run`, `check` and `plan` share.
struct ChainArguments {
  std::string file;
  std::vector<std::string> sets;
  std::vector<config::Override> options;  // those of `add_override`; they win over --set
  bool strict = false;
  function::NfKinds functions = {};  // those that the file can name

  void add_to(CLI::App& command, function::NfKinds known_functions);
  /// An option whose value stands in for the file's at `path`. Lives as long as the command.
  void add_override(CLI::App& command, const std::string& option, const std::string& path, const std::string& help);
  /// Reads the file with the overrides.
  [[nodiscard]] Result<config::LoadedChain> load(bool only_plan = false) const;
};

}  // namespace penstock::cli
