// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The progress line of a run on a terminal.

#pragma once

#include "run/run.h"

namespace penstock::cli {

/// Whether stderr is a terminal on which progress can be shown.
[[nodiscard]] bool shows_progress() noexcept;
/// Replaces the previous progress line on stderr.
void print_progress(const run::Progress& progress);
/// Erases the progress line.
void end_progress();

}  // namespace penstock::cli
