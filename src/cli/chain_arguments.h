// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Shared code of the commands: options for chains, the output of errors and warnings, and the exit codes that scripts
// rely on.

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
#include "config/reload.h"

namespace penstock::cli {

inline constexpr int kDone = 0;
inline constexpr int kFailed = 1;      // at run time
inline constexpr int kWrongUsage = 2;  // wrong usage or configuration

/// Logs each error (base/log.h): for the commands other than `run`, that prints it on a line of stderr.
void print_errors(const Errors& errors);
/// Logs the errors and returns the exit code for wrong usage or configuration. If there are very many and `all` is
/// false, errors of the same kind are logged once.
[[nodiscard]] int refuse(const Errors& errors, bool all = true);
/// Logs the errors and returns the exit code for failures at run time.
[[nodiscard]] int fail(const Errors& errors);
/// For a command whose queries may come from arguments or the standard input: checks that at most one of `files`, the
/// values of `option`, is the standard input ("-"), and that the queries are then given as arguments, since it cannot
/// be read for both. `questions` is what the queries are called in messages.
[[nodiscard]] Errors check_stdin(std::string_view option, std::span<const std::string> files, bool asked_by_arguments,
                                 std::string_view questions);
void print_cautions(const Errors& cautions);
/// Logs which parts of the chain file and its files are ignored, if any. If there are very many, warnings
/// that differ only in their place are logged once, with their number, unless `all` is set.
void print_warnings(const config::LoadedChain& loaded, bool all = false);
/// For the end of a command: prints on stderr what readers have skipped, with counts by file and reason. Prints nothing
/// if nothing was skipped.
void print_left_out(const Errors& left_out);

/// Logs mistakes in the user's rules, in the form of print_warnings, and that these rules are skipped.
void print_mistakes(const Errors& mistakes, bool all = false);

/// Prints the results of a run. `text`, if not empty, goes to the standard output, or to stderr if an output of the run
/// uses the standard output. Then logs the errors, and an error if `text` could not be written. Returns the exit
/// code.
[[nodiscard]] int print_results(std::string_view text, bool stdout_is_taken, Errors errors);

/// Validates that the value of an option is an integer in a range. CLI11's own validators accept -1 as the greatest
/// value.
[[nodiscard]] CLI::Validator whole_number(std::uint64_t least, std::uint64_t most);

/// Validates that the value of an option is not '', which scripts pass if a variable is not set. `expected` describes
/// the value.
[[nodiscard]] CLI::Validator not_empty(std::string_view expected);

/// Turns the name of a run's socket into its path (control::socket_named).
[[nodiscard]] CLI::Validator socket_name();

/// The options shared by `run`, `check` and `plan`.
struct ChainArguments {
  std::string file;
  std::vector<std::string> sets;
  std::vector<config::Override> options;  // from the options of `add_override`; they take precedence over --set
  bool strict = false;
  function::NfKinds functions = {};  // functions that the file can name

  void add_to(CLI::App& command, function::NfKinds known_functions);
  /// Adds an option whose value replaces the one at `path` in the file. This object must outlive the command.
  CLI::Option* add_override(CLI::App& command, const std::string& option, const std::string& path,
                            const std::string& help);
  /// Reads the file and applies the overrides.
  [[nodiscard]] Result<config::LoadedChain> load(bool only_plan = false) const;
  /// Reads the file again, for a chain that runs.
  [[nodiscard]] Result<config::Reload> plan_reload(const config::LoadedChain& running) const;

 private:
  [[nodiscard]] Result<config::LoadOptions> load_options(bool only_plan) const;
};

}  // namespace penstock::cli
