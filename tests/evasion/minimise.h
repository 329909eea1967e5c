// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Reduces a script while it still evades: steps and fragments are removed and odd packet fields reset, one after
// another, until nothing more can be removed.

#pragma once

#include <functional>
#include <string>

#include "evasion/script.h"

namespace penstock::evasion {

/// The script as one line without numbers. Scripts with the same effect on the sensor usually have the same outline.
[[nodiscard]] std::string outline_of(const Script& script);

[[nodiscard]] Script minimised(Script script, const std::function<bool(const Script&)>& evades);

}  // namespace penstock::evasion
