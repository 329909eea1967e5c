// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// `penstock check`: reads a chain file and all files that it names, and reports all mistakes in them.

#pragma once

#include <CLI/App.hpp>

#include "function/network_function.h"

namespace penstock::cli {

/// Adds the subcommand to `app`. After it has run, `exit_code` is set. `functions` are those that chain files can name;
/// they must outlive `app`.
void add_check(CLI::App& app, function::NfKinds functions, int& exit_code);

}  // namespace penstock::cli
