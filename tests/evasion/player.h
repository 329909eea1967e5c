// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Holds a conversation with a host: plays the attacker's steps and the application's, and keeps the attacker's view of
// the connection. Each packet passes the sensor on the path, if there is one, before the other side sees it.

#pragma once

#include <cstdint>
#include <functional>

#include "evasion/kernel_host.h"
#include "evasion/script.h"
#include "evasion/transcript.h"

namespace penstock::evasion {

/// Whether a packet (from the IP header on) passes, at this time.
using SensorOnPath = std::function<bool(BytesView packet, std::uint64_t time_ns)>;

/// The attacker has this number, which no conversation of the same sensor had. `begin_ns`: when it begins.
[[nodiscard]] Transcript play(const Script& script, KernelHost& host, std::uint32_t attacker, std::uint64_t begin_ns,
                              const SensorOnPath& sensor = {});

}  // namespace penstock::evasion
