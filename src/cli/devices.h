// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// `penstock devices`: shows the processors of this machine, and the PCIe bandwidth between them.

#pragma once

#include <CLI/App.hpp>

namespace penstock::cli {

/// Adds the subcommand to `app`. After it has run, `exit_code` is set.
void add_devices(CLI::App& app, int& exit_code);

}  // namespace penstock::cli
