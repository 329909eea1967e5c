// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Suricata 8's EVE records `alert` and `packet`, field for field (its user guide, "EVE JSON Format").

#pragma once

#include <functional>
#include <map>
#include <string>

#include "nf/nids/alert/alert.h"
#include "nf/nids/alert/time_text.h"

namespace penstock::nids {

/// What records hold on request.
struct EveOptions {
  bool payload = false;  // payload, payload_printable, stream: of a stream what was looked at, to 4 KiB
  bool packet = false;   // the packet's bytes
  /// Of the rule, by these prefixes of the systems that they name ("cve" …); null: none. Borrowed.
  const std::map<std::string, std::string, std::less<>>* references = nullptr;
};

/// A record without its line end. An alert without a rule is a packet that a tag asks for.
void append_eve(std::string& out, const Alert& alert, const EveOptions& options, TimeText& times);

}  // namespace penstock::nids
