// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The outputs that functions of a kind write, such as logs of alerts. Each is a key in the section `outputs` of a chain
// file, whose value is the file's path. The chain opens logs and writes texts; functions never see a path.

#pragma once

#include <span>
#include <string>
#include <string_view>

#include "report/event_log.h"

namespace penstock::function {

class NetworkFunction;

/// An entry of NfKind::outputs.
struct OutputKind {
  std::string_view name;      // the key in `outputs`; several kinds of function may write to one log
  std::string_view contents;  // completes the message "a function that writes …": "alerts"
  std::string_view help;      // one line
  /// If null, the output is a log: workers write lines to NfContext::log(name) while the chain runs, and SIGHUP reopens
  /// it. Otherwise it is a file that is written once, before the first packet, with the text that this returns for all
  /// functions of this kind in the chain.
  std::string (*text)(std::span<const NetworkFunction* const> functions) = nullptr;
  /// What the text must not reveal to other users, for example "keys"; empty if it has no secrets. If set, only the
  /// owner can read the file, the standard output is refused, and the string is wiped after writing. `text` must then
  /// reserve its memory up front, since a growing string leaves copies in memory.
  std::string_view secret{};
};

/// A log that the chain file names. It is open while stages exist, and lives as long as the functions.
struct NamedLog {
  std::string_view output;  // OutputKind::name
  report::EventLog* log;
};

}  // namespace penstock::function
