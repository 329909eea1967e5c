// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Explains to people which policy and SA a packet meets. Says nothing about keys.

#pragma once

#include "function/explanation.h"
#include "nf/ipsec/tables.h"
#include "packet/packet.h"

namespace penstock::ipsec {

/// Writes the packet's verdict, but takes no sequence number and encrypts nothing. `room`: how much its frame may grow.
[[nodiscard]] function::Explanation explain_outbound(PacketView packet, const Tables& tables, FrameRoom room);
/// The same, but decrypts nothing.
[[nodiscard]] function::Explanation explain_inbound(PacketView packet, const Tables& tables);

}  // namespace penstock::ipsec
