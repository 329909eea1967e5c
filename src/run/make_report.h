// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Adds up what the workers have counted.

#pragma once

#include <chrono>
#include <memory>
#include <span>

#include "report/run_report.h"
#include "run/chain.h"
#include "run/worker.h"

namespace penstock::run {

/// Any thread, while the workers run too: packets on their way are counted in, and in nothing else yet.
[[nodiscard]] report::RunReport make_report(const Chain& chain, std::span<const std::unique_ptr<Worker>> workers,
                                            std::chrono::nanoseconds elapsed);

}  // namespace penstock::run
