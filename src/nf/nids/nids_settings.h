// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// How the network function `nids` works, beside its rules.

#pragma once

#include <cstddef>

#include "nf/nids/alert/eve_alert.h"
#include "nf/nids/detect/inspector.h"
#include "nf/nids/detect/state_store.h"
#include "report/event_log.h"
#include "stack/tracker_options.h"

namespace penstock::nids {

/// What a run records beside its alerts, on request. Off it costs nothing.
struct NidsRecording {
  bool profile = false;       // what each rule's evaluation has cost
  bool alert_frames = false;  // the numbers of the frames that alerts were raised at
};

struct NidsSettings {
  stack::TrackerOptions tracker;
  InspectorOptions inspector;
  EveOptions eve;
  bool flow_state = false;  // send the state of the literals' automaton to the GPU with each TCP segment
  std::size_t host_memory = HostMemory::kDefaultBytes;
  report::EventLog* eve_log = nullptr;   // null: none
  report::EventLog* fast_log = nullptr;  // the same
};

}  // namespace penstock::nids
