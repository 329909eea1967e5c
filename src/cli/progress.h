// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The line on a terminal that says how far a run is.

#pragma once

#include "run/run.h"

namespace penstock::cli {

/// Whether there is a terminal to show progress on.
[[nodiscard]] bool shows_progress() noexcept;
/// In place of the line before, on stderr.
void print_progress(const run::Progress& progress);
/// Wipes it.
void end_progress();

}  // namespace penstock::cli
