// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Plans a reload: reads the chain file and the files that its functions name again, while the chain runs. What a reload
// cannot change (fixed_parts.h) is an error. Nothing of the running chain changes: the outputs are neither opened nor
// checked, and the new functions write to the running chain's logs.

#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "config/chain_file.h"
#include "config/outputs.h"
#include "function/network_function.h"

namespace penstock::config {

/// What a reload of a running chain would change, and the functions that would take the places of the running ones.
struct Reload {
  struct Change {
    std::string function;  // its name in the report: "nids#2"
    std::string what;      // "2 rules added"
  };
  std::vector<Change> changes;  // only functions that differ, in chain order
  /// All functions, in chain order. They borrow the logs of the running chain.
  std::vector<std::unique_ptr<function::NetworkFunction>> functions;
  /// The texts of the new functions, for the running chain's paths. Texts are written before the first packet of a run,
  /// and are out of date once a reload has been applied; so write them again then (write_text_outputs).
  std::vector<TextOutput> texts;
  Errors unsupported, without_effect, cautions;  // as in LoadedChain
};

/// Reads the chain file at `path` again, and builds its functions anew. `options` must be those of the running chain,
/// with the overrides of its command line. `running.chain.functions` are the functions whose places the new ones would
/// take: after a reload, those of the last one. They may run meanwhile.
///
/// All mistakes are reported at once, as by `load_chain`: in the file and the files that functions name; what a reload
/// cannot change; files that cannot be read again, such as pipes and the standard input, which are not opened; and
/// functions that do not fit into the running chain (plan/fit.h) or refuse to take a place (`changes_from`).
[[nodiscard]] Result<Reload> plan_reload(const LoadedChain& running, const std::string& path,
                                         const LoadOptions& options);

}  // namespace penstock::config
