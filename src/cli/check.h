// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// `penstock check`: reads a chain file and all it names, and says every mistake in them.

#pragma once

#include <CLI/App.hpp>

namespace penstock::cli {

/// Adds the subcommand to `app`; when it ran, its exit code is in `exit_code`.
void add_check(CLI::App& app, int& exit_code);

}  // namespace penstock::cli
