// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// How much of the machine is busy: with processes, with the kernel's own work, with interrupts. For systems whose work
// is in no process, such as Linux's forwarding.

#pragma once

#include <optional>

namespace penstock::experiments {

/// The time that all cores together have been busy since the machine was started, from /proc/stat; the difference of
/// two values divided by the elapsed time is the number of busy cores. Nothing if the system does not say.
[[nodiscard]] std::optional<double> busy_core_seconds();

}  // namespace penstock::experiments
