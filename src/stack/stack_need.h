// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>

#include "packet/field.h"

namespace penstock::stack {

/// What a function needs from the chain's stack (Gaviss §4.4).
enum class StackNeed : std::uint8_t {
  none,
  flow,           // flows, and the connection state of TCP; no reassembly, no tunnels
  ip_reassembly,  // packets, also from tunnels and reassembled from fragments, but no flows
  tcp_stream,     // everything: flows, reassembled datagrams and TCP streams
};

/// The fields that the stack reads to find a packet's flow: headers, and the payload of ICMP errors. A function that
/// needs flows reads them as well.
inline constexpr FieldSet kFlowFields =
    FieldSet::all() - FieldSet{Field::trailer, Field::in_port, Field::verdict, Field::mark, Field::flow_hash};

}  // namespace penstock::stack
