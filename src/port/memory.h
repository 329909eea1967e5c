// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The port `memory` loads captures before the run and replays them from memory, once or several times.

#pragma once

#include "port/catalog.h"

namespace penstock::port {

[[nodiscard]] PortKind memory_kind() noexcept;

}  // namespace penstock::port
