// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// `penstock plan`: shows the stages of a chain, their accesses, and what crosses PCIe before each of them.

#pragma once

#include <CLI/App.hpp>

#include "function/network_function.h"

namespace penstock::cli {

/// Adds the subcommand to `app`. After it has run, `exit_code` is set. `functions` are those that chain files can name;
/// they must outlive `app`.
void add_plan(CLI::App& app, function::NfKinds functions, int& exit_code);

}  // namespace penstock::cli
