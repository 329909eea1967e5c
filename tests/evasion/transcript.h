// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The packets of one conversation as the sensor saw them, and what the host's application read.

#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "evasion/packet_writer.h"

namespace penstock::evasion {

/// What happened to a packet after the sensor.
enum class Fate : std::uint8_t { delivered, died, dropped_by_sensor, held_by_sensor };

/// The inline sensor's decision on a packet.
struct Decision {
  std::uint64_t packet;  // its number
  bool passes;
};

struct WirePacket {
  std::uint64_t time_ns = 0;
  Bytes packet;  // from the IP header on
  bool from_host = false;
  Fate fate = Fate::delivered;
  std::string_view move{};  // the attack that it belongs to
};

struct Transcript {
  std::uint32_t attacker = 0;  // its number
  std::vector<WirePacket> packets;
  std::vector<std::string> streams;    // what the application read, by connection
  std::vector<std::string> datagrams;  // each datagram that it read
  bool read_signature = false;
};

}  // namespace penstock::evasion
