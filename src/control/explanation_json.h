// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// What would happen to a packet, as the result of `explain`: docs/control.md.

#pragma once

#include <nlohmann/json.hpp>
#include <vector>

#include "run/explain.h"
#include "run/packet_path.h"

namespace penstock::control {

[[nodiscard]] nlohmann::ordered_json to_json(const run::ExplainedPacket& packet);

// Parts that traces have too.
[[nodiscard]] nlohmann::ordered_json to_json(const std::vector<run::FieldChange>& changes);
/// Members `verdict`, `reason` and `port`.
void add_decision(nlohmann::ordered_json& to, const run::Decision& decision);

}  // namespace penstock::control
