// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Fields and packets as text, for traces and messages.

#pragma once

#include <string>

#include "packet/field.h"
#include "packet/packet.h"

namespace penstock {

/// The field's value in this packet: "192.0.2.1", "64", "0x1f2e", "S." for TCP flags, or hexadecimal bytes (long ones
/// truncated, with their length). "" if the packet does not have the field. Includes metadata; a port is shown by its
/// number, "port 1".
[[nodiscard]] std::string format_field(Field field, PacketView packet);

/// "IPv4 10.0.0.1:1000 > 192.0.2.1:80 TCP", "ARP", "EtherType 0x88cc".
[[nodiscard]] std::string format_packet(PacketView packet);

}  // namespace penstock
