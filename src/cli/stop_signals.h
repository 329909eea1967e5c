// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The end that a user, timeout(1) or a terminal that goes away asks a long command for.

#pragma once

#include <atomic>

namespace penstock::cli {

/// From here on SIGINT, SIGTERM and SIGHUP set what is returned, once; a second one ends the program at once. A reader
/// that goes away (`| head`) ends nothing.
[[nodiscard]] const std::atomic<bool>& stop_on_signals();

/// What is left to do may wait for a reader for ever, and must be stopped by one signal too.
void nothing_left_to_stop() noexcept;

}  // namespace penstock::cli
