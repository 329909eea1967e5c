// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// `penstock ike`: keeps the SAs of a running IPsec gateway as an IKE daemon negotiates them.

#pragma once

#include <CLI/App.hpp>

namespace penstock::cli {

/// Adds the subcommand to `app`. After it has run, `exit_code` is set.
void add_ike(CLI::App& app, int& exit_code);

}  // namespace penstock::cli
