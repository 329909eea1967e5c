// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Reports the state of the run to the service manager that has started the process: systemd, by sd_notify(3). Without
// one (no NOTIFY_SOCKET in the environment), nothing happens. One thread uses it; the keep-alives are in watchdog.h.

#pragma once

#include <sys/types.h>

#include <string>

#include "config/chain_file.h"
#include "control/reload.h"

namespace penstock::control {

class ServiceManager {
 public:
  void starting() const;
  /// Packets flow. Between this and `stopping`, reloads are reported.
  void ready(const config::LoadedChain& loaded);
  void reload_begins() const;
  /// The chain runs again with the next version or, after an error, still with the former one.
  void reload_ended(const ReloadOutcome& outcome);
  /// Another process is about to continue the run. If it belongs to the same service, it is the service's main process
  /// from now on: this one, whose end is not the service's, says no more. Otherwise the service ends with this process.
  void hand_over(pid_t successor);
  /// The sources are not read any more. Further calls do nothing.
  void stopping();

 private:
  bool is_ready_ = false;
};

/// "Reload refused, the former version stays in use: rules.txt:3: …", on one line.
[[nodiscard]] std::string status_line(const ReloadOutcome& outcome);

}  // namespace penstock::control
