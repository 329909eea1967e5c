// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// `penstock route`: shows where the router sends packets to some addresses, by longest prefix match.

#pragma once

#include <CLI/App.hpp>

namespace penstock::cli {

/// Adds the subcommand to `app`. After it has run, `exit_code` is set.
void add_route(CLI::App& app, int& exit_code);

}  // namespace penstock::cli
