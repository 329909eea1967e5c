// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The shape of a lane as a message, and back, with every number checked.

#pragma once

#include <cstddef>

#include "base/error.h"
#include "proxy/protocol.h"
#include "ring/lane.h"

namespace penstock::proxy {

/// Fails for shapes that no message can carry. Without the stages' ids.
[[nodiscard]] Result<MakeLane> to_message(const ring::LaneShape& shape);
/// Fails for shapes with which a lane would leave its memory, or that are larger than any lane need be.
[[nodiscard]] Result<ring::LaneShape> to_shape(const MakeLane& message);

}  // namespace penstock::proxy
