// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The port `dpdk`: a device of DPDK's, which is polled without the kernel.

#pragma once

#include "port/catalog.h"

namespace penstock::port {

[[nodiscard]] PortKind dpdk_kind() noexcept;

}  // namespace penstock::port
