// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Adds up the workers' counters to a report.

#pragma once

#include <chrono>
#include <memory>
#include <span>

#include "report/run_report.h"
#include "run/chain.h"
#include "run/receiver.h"
#include "run/worker.h"

namespace penstock::run {

/// May be called from any thread, also during the run: then packets in flight count as received and as nothing else
/// yet. `receiver`: the one of shared queueing; null: there is none.
[[nodiscard]] report::RunReport make_report(const Chain& chain, std::span<const std::unique_ptr<Worker>> workers,
                                            std::chrono::nanoseconds elapsed, const Receiver* receiver = nullptr);

}  // namespace penstock::run
