// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Writes a timeline as a file for Perfetto and chrome://tracing: a JSON object in the Trace Event Format, with complete
// events ("ph": "X") in microseconds. Each worker is shown as a process, and each of its streams as a thread.

#pragma once

#include <string>

#include "ring/timeline.h"

namespace penstock::ring {

/// Call it once the run is over. The size of the text is bounded by that of the timeline.
[[nodiscard]] std::string trace_events_json(const Timeline& timeline);

}  // namespace penstock::ring
