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

/// A line of NfKind::outputs.
struct OutputKind {
  std::string_view name;      // the key in `outputs`; several kinds of function may write to one log
  std::string_view contents;  // in messages, "a function that writes …": "alerts"
  std::string_view help;      // one line
  /// Null: a log. Workers write lines to NfContext::log(name) while the chain runs, and SIGHUP reopens it. Otherwise a
  /// file that is written once, before the first packet: returns its content, for all functions of this kind in the
  /// chain together.
  std::string (*text)(std::span<const NetworkFunction* const> functions) = nullptr;
  /// What a text must not reveal to other users: "keys". Then only the owner can read the file, standard output is
  /// refused, and the string is wiped after writing. `text` must reserve its memory at once: a string that grows leaves
  /// copies. Empty: nothing.
  std::string_view secret{};
};

/// A log that the chain file names. Open while stages exist; lives as long as the functions.
struct NamedLog {
  std::string_view output;  // OutputKind::name
  report::EventLog* log;
};

}  // namespace penstock::function
