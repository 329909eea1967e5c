// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Which values a record may hold under which name. No measurement is outside these ranges; a record that was edited or
// damaged may be.

#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "experiments/point.h"

namespace penstock::experiments {

/// What is expected under this name of a point ("a whole number from 1 to 1e15"). Nothing if the value is right.
[[nodiscard]] std::optional<std::string> expected_of_point(std::string_view key, const Value& value);

/// The same for the limits of the machine: rates, prices and powers.
[[nodiscard]] std::optional<std::string> expected_of_limits(const Value& value);

}  // namespace penstock::experiments
