// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The port `memory`: captures that are loaded before the run and played from memory, once or many times.

#pragma once

#include "port/catalog.h"

namespace penstock::port {

[[nodiscard]] PortKind memory_kind() noexcept;

}  // namespace penstock::port
