// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// `penstock check`: reads a chain file and all it names, and says every mistake in them.

#pragma once

#include <CLI/App.hpp>

#include "function/network_function.h"

namespace penstock::cli {

/// Adds the subcommand to `app`; when it ran, its exit code is in `exit_code`. `functions` are those that chain files
/// can name, and outlive `app`.
void add_check(CLI::App& app, function::NfKinds functions, int& exit_code);

}  // namespace penstock::cli
