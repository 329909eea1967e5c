// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The port `af_xdp`: a network interface of the system, through AF_XDP sockets, which take its frames before the system
// does, in the driver if it can.

#pragma once

#include "port/catalog.h"

namespace penstock::port {

[[nodiscard]] PortKind af_xdp_kind() noexcept;

}  // namespace penstock::port
