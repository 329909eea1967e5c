// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The range of each value in a record. No measurement is outside these ranges, but a record that was edited or damaged
// may be.

#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "experiments/point.h"

namespace penstock::experiments {

/// Returns what is expected for this key of a point ("a whole number from 1 to 1e15"), or nothing if the value is
/// valid.
[[nodiscard]] std::optional<std::string> expected_of_point(std::string_view key, const Value& value);

/// The same for limits of the machine: rates, prices and power.
[[nodiscard]] std::optional<std::string> expected_of_limits(const Value& value);

}  // namespace penstock::experiments
