// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The port `generator` makes packets as fast as they are consumed, or at a given rate. Each worker's queue makes the
// packets of its own flows; the workers share only read-only data.

#pragma once

#include <cstdint>

#include "port/catalog.h"

namespace penstock::port {

[[nodiscard]] PortKind generator_kind() noexcept;

/// Monotonic; in nanoseconds since the Unix epoch.
using NanosecondClock = std::uint64_t (*)() noexcept;

/// Like the catalog's `make`, but with another clock, for tests.
[[nodiscard]] Result<std::unique_ptr<Port>> make_generator(const Parameters& parameters, PortIndex index,
                                                           NanosecondClock clock);

}  // namespace penstock::port
