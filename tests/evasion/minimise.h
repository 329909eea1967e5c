// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The least of a script that still evades: steps and fragments are left out, and what is odd about packets is made
// plain, one after another, until nothing more can be.

#pragma once

#include <functional>
#include <string>

#include "evasion/script.h"

namespace penstock::evasion {

/// The script in a line, without numbers: scripts that do the same to the sensor mostly have the same.
[[nodiscard]] std::string outline_of(const Script& script);

[[nodiscard]] Script minimised(Script script, const std::function<bool(const Script&)>& evades);

}  // namespace penstock::evasion
