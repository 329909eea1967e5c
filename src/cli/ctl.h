// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// `penstock ctl`: the operator's command for a run that listens (`penstock run --control`).

#pragma once

#include <CLI/App.hpp>

#include "control/client.h"

namespace penstock::cli {

/// The exit code of a command that a run did not carry out.
[[nodiscard]] int code_of(const control::NoResult& failure);

/// Adds the subcommand to `app`. After it has run, `exit_code` is set.
void add_ctl(CLI::App& app, int& exit_code);

}  // namespace penstock::cli
