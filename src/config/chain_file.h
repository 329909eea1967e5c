// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// A chain file, read, checked and built. All mistakes are found in one go; a chain is built only from a file without
// any.

#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/parameter.h"
#include "config/outputs.h"
#include "nf/catalog.h"
#include "plan/transfer_plan.h"
#include "run/chain.h"

namespace penstock::config {

/// A value from the command line that stands in for one of the file: `--set run.workers=4`.
struct Override {
  std::string path;    // keys, joined by dots; a function of the chain by its name ("nids#2": the second of
                       // that name) or its position from 0
  std::string value;   // YAML; relative paths in it are relative to the working directory
  std::string text{};  // as the user gave it, for errors: "--set run.workers=4", "--workers 4"
};

/// An option that stands in for a value: `--workers 4` for run.workers.
[[nodiscard]] Override override_by_option(std::string_view option, std::string path, std::string value);

/// The "a.b=c" of `--set a.b=c` taken apart.
[[nodiscard]] Result<Override> parse_override(const std::string& text);

struct LoadedChain {
  run::Chain chain;
  std::string report_path;              // "": none
  std::vector<TextOutput> texts;        // that its functions write
  std::string timeline_path;            // of the chain's timeline; "": none
  std::vector<Parameters::File> files;  // all that the chain file names, and itself
  bool writes_stdout = false;           // a capture or the report goes there: nothing else may
  Errors unsupported;                   // what readers do not support, and leave out
  Errors without_effect;                // what the run section asks for in vain
  Errors cautions;                      // what protection the chain file switches off
};

struct LoadOptions {
  std::vector<Override> overrides;
  bool strict = false;  // what readers do not support is an error
  /// The chain is looked at and not run, as `plan` does: for a GPU that is not there, and for captures that are not.
  bool only_plan = false;
  function::NfKinds functions = nf::catalog();  // those that the file can name
};

[[nodiscard]] Result<LoadedChain> load_chain(const std::string& path, const LoadOptions& options);
/// The same of a chain that a command makes. `name` stands in places.
[[nodiscard]] Result<LoadedChain> load_chain_text(const std::string& text, std::string name,
                                                  const LoadOptions& options);

/// What of the files that its ports and outputs name will not do: captures that are missing or not read, folders that
/// cannot be written. Nothing is made or changed, and no pipe is opened.
[[nodiscard]] Errors check_files(const LoadedChain& loaded);

/// A warning for each output that another process is writing now.
[[nodiscard]] Errors busy_outputs(const LoadedChain& loaded);

}  // namespace penstock::config
