// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Reads 5-tuples that users type, `SOURCE DESTINATION PROTOCOL SOURCE-PORT DESTINATION-PORT`, as keys. A tuple has no
// TCP flags and no ICMP type: conditions on them count as true. Its ports are compared whatever its protocol is.

#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "classify/key.h"

namespace penstock::firewall {

/// One tuple per line; empty lines and # comments are skipped. `file` is the name of the text in errors, and
/// `first_line` the number of its first line.
[[nodiscard]] Result<std::vector<classify::Key>> read_tuples(std::string_view text, const std::string& file,
                                                             std::uint32_t first_line = 1);

}  // namespace penstock::firewall
