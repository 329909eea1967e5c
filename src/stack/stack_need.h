// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>

#include "packet/field.h"

namespace penstock::stack {

/// What a function needs of the chain's stack (Gaviss §4.4).
enum class StackNeed : std::uint8_t {
  none,
  flow,           // the flows of packets, and for TCP the state of the connection; without fragments and tunnels
  ip_reassembly,  // packets with those in tunnels and datagrams from fragments, but no flows
  tcp_stream,     // all of it: flows, datagrams and TCP streams
};

/// What the stack reads of a packet to find its flow: a function that needs flows reads it. Headers, and what is in
/// ICMP errors.
inline constexpr FieldSet kFlowFields =
    FieldSet::all() - FieldSet{Field::trailer, Field::in_port, Field::verdict, Field::mark, Field::flow_hash};

}  // namespace penstock::stack
