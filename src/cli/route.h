// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// `penstock route`: where the router would send packets to some addresses, by longest prefix match.

#pragma once

#include <CLI/App.hpp>

namespace penstock::cli {

/// Adds the subcommand to `app`; when it ran, its exit code is in `exit_code`.
void add_route(CLI::App& app, int& exit_code);

}  // namespace penstock::cli
