// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Explains to people which rules can match a packet by its headers.

#pragma once

#include "function/explanation.h"
#include "nf/nids/detect/detection.h"
#include "packet/packet.h"

namespace penstock::nids {

/// As for the first packet of a flow, which goes to the server. Changes nothing. `drops`: rules may drop packets.
[[nodiscard]] function::Explanation explain(PacketView packet, const Detection& detection, bool drops);

}  // namespace penstock::nids
