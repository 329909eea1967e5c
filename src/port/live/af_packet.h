// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The port `af_packet`: a network interface of the system, through packet sockets (packet(7)).

#pragma once

#include "port/catalog.h"

namespace penstock::port {

[[nodiscard]] PortKind af_packet_kind() noexcept;

}  // namespace penstock::port
