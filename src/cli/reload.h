// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Logs what a reload or rollback of a running chain has done.

#pragma once

#include <string_view>

#include "config/chain_file.h"
#include "control/reload.h"

namespace penstock::cli {

/// Logs what has changed, or all reasons why nothing has. `loaded` has the warnings of the configuration in use.
/// `asked_by`: "SIGUSR2".
void log_reload(const control::ReloadOutcome& outcome, const config::LoadedChain& loaded, std::string_view asked_by);

}  // namespace penstock::cli
