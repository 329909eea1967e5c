// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// A timeline as a file that Perfetto and chrome://tracing open: the Trace Event Format's JSON object, with complete
// events ("ph": "X") in microseconds. A worker is a process there and each of its streams a thread.

#pragma once

#include <string>

#include "ring/timeline.h"

namespace penstock::ring {

/// Once the run is over. Its length is bounded by what the timeline keeps.
[[nodiscard]] std::string trace_events_json(const Timeline& timeline);

}  // namespace penstock::ring
