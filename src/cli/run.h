// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// `penstock run`: runs a chain and reports what happened to every packet.

#pragma once

#include <CLI/App.hpp>

#include "function/network_function.h"

namespace penstock::cli {

/// Adds the subcommand to `app`. After it has run, `exit_code` is set. `functions` are those that chain files can name;
/// they must outlive `app`.
void add_run(CLI::App& app, function::NfKinds functions, int& exit_code);

}  // namespace penstock::cli
