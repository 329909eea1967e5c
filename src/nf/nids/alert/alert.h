// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// What the detection reports: alerts, and packets that a tag selects for logging. Borrows everything; a sink must write
// an alert out before it returns.

#pragma once

#include "nf/nids/rules/rule.h"
#include "stack/tracker.h"

namespace penstock::nids {

struct Alert {
  const Rule* rule = nullptr;  // null: a packet logged because of an earlier alert's `tag`
  const stack::TrackedPacket* packet = nullptr;
  bool dropped = false;    // the packet is dropped (EVE's action "blocked")
  bool in_stream = false;  // the match was in the reassembled stream
  stack::Bytes stream{};   // the bytes of it that were inspected; empty unless `in_stream`
};

/// Each worker has its own; the sink synchronises what workers share.
class AlertSink {
 public:
  virtual ~AlertSink() = default;
  virtual void alert(const Alert& alert) noexcept = 0;
};

}  // namespace penstock::nids
