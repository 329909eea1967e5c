// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// `penstock run` on SIGUSR2: reads the chain file and its files again, and puts them in use while packets flow.

#pragma once

#include "cli/chain_arguments.h"
#include "config/chain_file.h"
#include "run/run.h"

namespace penstock::cli {

/// Reloads the chain `loaded`, which runs as `run`. Prints on stderr what has changed, or all reasons why nothing has.
/// Afterwards, the warnings in `loaded` are those of the configuration in use.
void reload(run::Run& run, config::LoadedChain& loaded, const ChainArguments& arguments);

}  // namespace penstock::cli
