// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Expressions for the comparison of `penstock filter` with tcpdump.

#pragma once

#include <string>
#include <vector>

namespace penstock {

/// Several hundred: a hand-written list, and combinations. Some of them are wrong for some or all link types.
[[nodiscard]] std::vector<std::string> filter_expressions();

}  // namespace penstock
