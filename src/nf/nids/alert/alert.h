// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// What the detection tells: alerts, and packets that a tag asks for. Borrows all; written down at once.

#pragma once

#include "nf/nids/rules/rule.h"
#include "stack/tracker.h"

namespace penstock::nids {

struct Alert {
  const Rule* rule = nullptr;  // null: a packet that an earlier alert's `tag` asks for
  const stack::TrackedPacket* packet = nullptr;
  bool dropped = false;    // the packet is (action "blocked")
  bool in_stream = false;  // the match was in the reassembled stream
  stack::Bytes stream{};   // the bytes of it that were looked at; empty where not `in_stream`
};

/// One worker's. What workers share is inside.
class AlertSink {
 public:
  virtual ~AlertSink() = default;
  virtual void alert(const Alert& alert) noexcept = 0;
};

}  // namespace penstock::nids
