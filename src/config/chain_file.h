// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Reads, checks and builds a chain file. All mistakes are reported at once. A chain is only built from a file without
// mistakes.

#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/listen_address.h"
#include "base/log.h"
#include "base/parameter.h"
#include "config/fixed_parts.h"
#include "config/outputs.h"
#include "nf/catalog.h"
#include "plan/transfer_plan.h"
#include "run/chain.h"

namespace penstock::config {

/// A value from the command line that overrides one in the file: `--set run.workers=4`.
struct Override {
  std::string path;    // keys joined by dots; a function of the chain by its name ("nids#2": the second with that name)
                       // or its position from 0
  std::string value;   // YAML; relative paths start at the working directory
  std::string text{};  // as the user gave it, for errors: "--set run.workers=4", "--workers 4"
};

/// An option that overrides a value: `--workers 4` for run.workers.
[[nodiscard]] Override override_by_option(std::string_view option, std::string path, std::string value);

/// Parses the "a.b=c" of `--set a.b=c`.
[[nodiscard]] Result<Override> parse_override(const std::string& text);

struct LoadedChain {
  run::Chain chain;
  std::string report_path;                       // "": no report
  std::vector<TextOutput> texts;                 // texts that the functions write
  std::vector<function::NamedLog> logs;          // the chain's logs by the names of their outputs
  std::string control_path;                      // unix socket for the operator; "": none
  std::optional<ListenAddress> metrics_address;  // where Prometheus and browsers connect; empty: nowhere
  LogLevel log_level = LogLevel::info;
  std::string log_path;                 // "": stderr
  std::string timeline_path;            // output file of the chain's timeline; "": no timeline
  std::vector<Parameters::File> files;  // all files that the chain file names, and itself
  bool writes_stdout = false;           // a capture or the report goes to the standard output, so nothing else may
  Errors unsupported;                   // unsupported constructs that readers have skipped
  Errors without_effect;                // settings of the run section without effect
  Errors cautions;                      // protection that the chain file disables, and distant memory
  // For a reload (reload.h):
  FixedParts fixed;
  Errors fixed_without_effect, fixed_cautions;  // those of the warnings above that are about the fixed parts
  std::vector<function::NfTraits> planned;      // of the functions with which the chain was planned
};

struct LoadOptions {
  std::vector<Override> overrides;
  bool strict = false;  // unsupported constructs are errors
  /// The chain is inspected but not run (`plan`). GPUs and captures need not exist.
  bool only_plan = false;
  function::NfKinds functions = nf::catalog();  // functions that the file can name
  std::filesystem::path machine = "/";          // the machine's files, such as /sys, are below this folder
};

[[nodiscard]] Result<LoadedChain> load_chain(const std::string& path, const LoadOptions& options);
/// Like `load_chain`, for a chain that a command generates. `name` is used as the file name in places.
[[nodiscard]] Result<LoadedChain> load_chain_text(const std::string& text, std::string name,
                                                  const LoadOptions& options);

/// Errors about the files that ports and outputs name, such as missing or unreadable captures, or folders that are not
/// writable. Does not create or change anything, and does not open pipes.
[[nodiscard]] Errors check_files(const LoadedChain& loaded);

/// What lets packets pass the ports by now. It may change during a run.
[[nodiscard]] Errors port_cautions(const run::Chain& chain);

/// A warning for each output that another process is currently writing.
[[nodiscard]] Errors busy_outputs(const LoadedChain& loaded);

}  // namespace penstock::config
