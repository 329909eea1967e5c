// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The port `generator`: made packets, as fast as they are taken or at an offered rate. Each worker's queue makes the
// packets of its own share of the flows; what they share is read-only.

#pragma once

#include <cstdint>

#include "port/catalog.h"

namespace penstock::port {

[[nodiscard]] PortKind generator_kind() noexcept;

/// Nanoseconds since the epoch; never goes back.
using NanosecondClock = std::uint64_t (*)() noexcept;

/// As the catalog makes it, with another clock: for tests.
[[nodiscard]] Result<std::unique_ptr<Port>> make_generator(const Parameters& parameters, PortIndex index,
                                                           NanosecondClock clock);

}  // namespace penstock::port
