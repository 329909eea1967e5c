// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// EVE's `flow` record: a flow that has ended, by Suricata's names.

#pragma once

#include <string>

#include "report/time_text.h"
#include "stack/flow.h"

namespace penstock::nids {

/// Appends the record without its newline.
void append_eve_flow(std::string& out, const stack::Flow& flow, report::TimeText& times);

}  // namespace penstock::nids
