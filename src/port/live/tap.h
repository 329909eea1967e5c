// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The port `tap`: a TAP interface of the system, whose other end is this process.

#pragma once

#include "port/catalog.h"

namespace penstock::port {

[[nodiscard]] PortKind tap_kind() noexcept;

}  // namespace penstock::port
