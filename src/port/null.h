// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The port `null`: accepts every packet and discards it.

#pragma once

#include "port/catalog.h"

namespace penstock::port {

[[nodiscard]] PortKind null_kind() noexcept;

}  // namespace penstock::port
