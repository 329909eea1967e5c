// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "cli/reload.h"

#include <fmt/format.h>

#include "base/log.h"
#include "cli/chain_arguments.h"

namespace penstock::cli {

void log_reload(const control::ReloadOutcome& outcome, const config::LoadedChain& loaded, std::string_view asked_by) {
  using Result = control::ReloadOutcome::Result;
  const char* const what = outcome.what == control::ReloadOutcome::What::rollback ? "rollback" : "reload";
  if (outcome.result == Result::in_use) print_warnings(loaded);
  print_cautions(config::port_cautions(loaded.chain));
  print_errors(outcome.errors);
  switch (outcome.result) {
    case Result::refused:
    case Result::failed: log_error("{} ({}): refused, see above; nothing has changed", what, asked_by); break;
    case Result::unchanged: log_info("{} ({}): nothing has changed; the run continues", what, asked_by); break;
    case Result::in_use:
      log_info("{} ({}): in use after {:.1f} s; the run continues", what, asked_by, outcome.elapsed.count());
      for (const config::Reload::Change& change : outcome.changes)
        log_info("{}: {}: {}", what, change.function, change.what);
  }
}

}  // namespace penstock::cli
