// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Holds a conversation with a host: plays the attacker's steps and the application's, and keeps the attacker's view of
// the connection. Each packet passes the sensor on the path, if there is one, before the other side sees it.

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

/// Decides on packets (from the IP header on) that come with their number and time, each at once or once a later one
/// has come: fragments may wait for their datagram's first. The decisions are valid until the next call.
using SensorOnPath =
    std::function<std::span<const Decision>(BytesView packet, std::uint64_t number, std::uint64_t time_ns)>;

/// One conversation. Borrows all.
class Player {
 public:
  /// The attacker has this number, which no conversation of the same sensor had. `begin_ns`: when it begins.
  Player(const Script& script, KernelHost& host, std::uint32_t attacker, std::uint64_t begin_ns,
         SensorOnPath sensor = {});
  ~Player();
  Player(Player&&) noexcept;

  /// Plays on, to the end or until the host waits: then true, and it goes on once `kHostWaits` have passed.
  bool go_on();
  static constexpr std::chrono::milliseconds kHostWaits{1500};
  [[nodiscard]] Transcript finish();

 private:
  class Conversation;
  std::unique_ptr<Conversation> conversation_;
};

/// All of it, with the waiting.
[[nodiscard]] Transcript play(const Script& script, KernelHost& host, std::uint32_t attacker, std::uint64_t begin_ns,
                              SensorOnPath sensor = {});

}  // namespace penstock::evasion
