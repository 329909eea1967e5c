// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The settings of `nids`, apart from its rules.

#pragma once

#include <chrono>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "nf/nids/alert/eve_alert.h"
#include "nf/nids/detect/inspector.h"
#include "nf/nids/detect/state_store.h"
#include "nf/nids/match/scan_tables.h"
#include "report/event_log.h"
#include "stack/tracker_options.h"

namespace penstock::nids {

/// What a run records in addition to its alerts. What is off costs nothing.
struct NidsRecording {
  bool profile = false;       // the cost of evaluating each rule
  bool alert_frames = false;  // the numbers of the frames that raised alerts
};

/// A parameter's value, to compare with another rule set's.
struct NidsParameter {
  std::string_view name;
  std::string value;
  Place place{};
  bool is_fixed = false;  // what it sets up lasts for a run: the tracker, memory, whether packets are dropped
};

struct NidsSettings {
  stack::TrackerOptions tracker;
  InspectorOptions inspector;
  EveOptions eve;
  ScanEngine scan = ScanEngine::automatic;  // on a GPU
  bool flow_state = false;                  // send the literals' automaton state with each TCP segment to the GPU
  std::size_t host_memory = HostMemory::kDefaultBytes;
  std::chrono::seconds stats_interval{};    // of EVE `stats` records; 0: one at the end
  bool flow_records = false;                // EVE `flow` records
  report::EventLog* eve_log = nullptr;      // null: none
  report::EventLog* fast_log = nullptr;     // null: none
  std::vector<NidsParameter> parameters{};  // all that are not files or variables of the rules, in the table's order
};

}  // namespace penstock::nids
