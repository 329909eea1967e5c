// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// What would happen to a packet, as the result of `explain`: docs/control.md.

#pragma once

#include <nlohmann/json.hpp>

#include "run/explain.h"

namespace penstock::control {

[[nodiscard]] nlohmann::ordered_json to_json(const run::ExplainedPacket& packet);

}  // namespace penstock::control
