// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Errors as JSON, in one form wherever the program prints or sends them.

#pragma once

#include <nlohmann/json.hpp>

#include "base/error.h"

namespace penstock::report {

/// A list: {"file", "line", "column", "message", "found", "expected"}, each null if it does not apply.
[[nodiscard]] nlohmann::ordered_json to_json(const Errors& errors);

/// The errors of a list that `to_json` has written. What is missing or of another type stays empty.
[[nodiscard]] Errors errors_of(const nlohmann::ordered_json& list);

}  // namespace penstock::report
