// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Suricata's fast.log: one line for each alert.

#pragma once

#include <string>

#include "nf/nids/alert/alert.h"
#include "report/time_text.h"

namespace penstock::nids {

/// Appends a line without its newline, such as "11/21/2026-20:24:41.123456  [**] [1:2100498:7] GPL ATTACK_RESPONSE id
/// check returned root [**] [Classification: Potentially Bad Traffic] [Priority: 2] {TCP} 192.0.2.1:80 ->
/// 192.0.2.2:4321". The alert must have a rule.
void append_fast(std::string& out, const Alert& alert, report::TimeText& times);

}  // namespace penstock::nids
