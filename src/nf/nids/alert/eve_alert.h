// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Suricata 8's EVE records `alert` and `packet`, field for field (its user guide, "EVE JSON Format").

#pragma once

#include <functional>
#include <map>
#include <string>

#include "nf/nids/alert/alert.h"
#include "report/time_text.h"

namespace penstock::nids {

/// Optional contents of the records.
struct EveOptions {
  bool payload = false;  // payload, payload_printable, stream; of a stream, up to 4 KiB of the inspected bytes
  bool packet = false;   // the packet's bytes
  /// Prefixes of the rule's references, by the system that they name ("cve" …). Null: references are not written.
  /// Borrowed.
  const std::map<std::string, std::string, std::less<>>* references = nullptr;
};

/// Appends a record without its newline. An alert without a rule becomes a `packet` record (a tagged packet).
void append_eve(std::string& out, const Alert& alert, const EveOptions& options, report::TimeText& times);

}  // namespace penstock::nids
