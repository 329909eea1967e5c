// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// `penstock proxy`: one process that owns a GPU for several runs, and questions to it.

#pragma once

#include <CLI/App.hpp>

namespace penstock::cli {

/// Adds the subcommand to `app`. After it has run, `exit_code` is set.
void add_proxy(CLI::App& app, int& exit_code);

}  // namespace penstock::cli
