// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Fields and packets in words, for traces and messages.

#pragma once

#include <string>

#include "packet/field.h"
#include "packet/packet.h"

namespace penstock {

/// The field's value in this packet: "192.0.2.1", "64", "0x1f2e", "S." for TCP flags, bytes in hexadecimal (long ones
/// cut, with their length); "" where the packet has no such field. Metadata too, but for ports: "port 1".
[[nodiscard]] std::string format_field(Field field, PacketView packet);

/// "IPv4 10.0.0.1:1000 > 192.0.2.1:80 TCP", "ARP", "EtherType 0x88cc".
[[nodiscard]] std::string format_packet(PacketView packet);

}  // namespace penstock
