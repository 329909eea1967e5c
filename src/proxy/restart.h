// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// How a proxy goes on after an error has ended the process's use of the device: only another program can use it again.
// So the proxy executes its own program anew, with the same arguments, in the same process. The listening socket stays
// open meanwhile, so its file stays where containers have it mounted, and those who connect wait in its queue.

#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <thread>

#include "base/error.h"
#include "proxy/protocol.h"
#include "proxy/scheduler.h"

namespace penstock::proxy {

class Server;

/// What a proxy has from the program that was in its process before, if there was one.
struct Inheritance {
  std::optional<Listener> listener;
  std::optional<Policy> policy;  // as it was last set
  std::uint64_t restarts = 0;
  unsigned in_a_row = 0;  // restarts, each soon after the one before
};

/// Takes it from the environment. Call it once, before threads start. Nothing if there is none for a proxy at `path`.
[[nodiscard]] Inheritance take_inheritance(const std::string& path);

/// How long a proxy waits from its start until it may be replaced: the longer, the more often that happens.
[[nodiscard]] std::chrono::seconds least_life(unsigned in_a_row) noexcept;

/// Serves until `stop`. If the device is lost, does not return, unless the program cannot be executed: that is an
/// error.
[[nodiscard]] Result<void> serve(Server& server, const std::atomic<bool>& stop);

/// Ends the process in the end, if a proxy cannot end in order: what its tenants have on a device that hangs ends when
/// the process does. Make it before the server is destroyed, and let it live until afterwards.
class EndLimit {
 public:
  /// Throws std::system_error.
  EndLimit(const Server& server, std::string path);

 private:
  std::jthread thread_;
};

}  // namespace penstock::proxy
