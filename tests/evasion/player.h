// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Plays a conversation with a host: performs the steps of the attacker and the application, and keeps the attacker's
// view of the connection. Each packet passes the inline sensor, if there is one, before the other side sees it.

#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>

#include "evasion/kernel_host.h"
#include "evasion/script.h"
#include "evasion/transcript.h"

namespace penstock::evasion {

/// Decides on packets (from the IP header on) with their number and time. A decision is returned at once or with a
/// later packet, because fragments may wait for their datagram's first one. Decisions are valid until the next call.
using SensorOnPath =
    std::function<std::span<const Decision>(BytesView packet, std::uint64_t number, std::uint64_t time_ns)>;

/// One conversation. Borrows all arguments.
class Player {
 public:
  /// No other conversation of the same sensor may use the attacker's number. `begin_ns`: start time.
  Player(const Script& script, KernelHost& host, std::uint32_t attacker, std::uint64_t begin_ns,
         SensorOnPath sensor = {});
  ~Player();
  Player(Player&&) noexcept;

  /// Continues until the end, or until the host waits. In the latter case it returns true, and must be called again
  /// after `kHostWaits`.
  bool go_on();
  static constexpr std::chrono::milliseconds kHostWaits{1500};
  [[nodiscard]] Transcript finish();

 private:
  class Conversation;
  std::unique_ptr<Conversation> conversation_;
};

/// Plays the whole conversation, including the waits.
[[nodiscard]] Transcript play(const Script& script, KernelHost& host, std::uint32_t attacker, std::uint64_t begin_ns,
                              SensorOnPath sensor = {});

}  // namespace penstock::evasion
