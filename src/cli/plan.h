// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// `penstock plan`: the stages of a chain, what they access, and what crosses PCIe before each.

#pragma once

#include <CLI/App.hpp>

#include "function/network_function.h"

namespace penstock::cli {

/// Adds the subcommand to `app`; when it ran, its exit code is in `exit_code`. `functions` are those that chain files
/// can name, and outlive `app`.
void add_plan(CLI::App& app, function::NfKinds functions, int& exit_code);

}  // namespace penstock::cli
