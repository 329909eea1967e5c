// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Reads 5-tuples that users type, `SOURCE DESTINATION PROTOCOL SOURCE-PORT DESTINATION-PORT`, as keys. A tuple does not
// tell TCP flags or ICMP types: conditions on them are taken to hold. Its ports are compared whatever its protocol is.

#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "classify/key.h"

namespace penstock::firewall {

/// One tuple a line; empty lines and # comments are passed over. `file` names the text in errors, and
/// `first_line` is the number of its first line.
[[nodiscard]] Result<std::vector<classify::Key>> read_tuples(std::string_view text, const std::string& file,
                                                             std::uint32_t first_line = 1);

}  // namespace penstock::firewall
