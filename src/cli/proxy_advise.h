// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// `penstock proxy advise`: which scheduler and profiles suit given tenants, by a record of `penstock bench sharing`.

#pragma once

#include <CLI/App.hpp>

namespace penstock::cli {

/// Adds the subcommand to `proxy`. After it has run, `exit_code` is set.
void add_proxy_advise(CLI::App& proxy, int& exit_code);

}  // namespace penstock::cli
