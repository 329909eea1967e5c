// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Reads ClassBench filter sets (Taylor & Turner, INFOCOM 2005), IPv4 and IPv6. Each line is a rule:
//
//   @10.0.0.0/8  192.0.2.1/32  0 : 65535  80 : 80  0x06/0xFF  0x0200/0x1200
//
// The columns are source, destination, source ports, destination ports, protocol/mask, and flags/mask, which may be
// absent. In TCP rules, the high byte of the last column is the TCP flags byte; in ICMP rules, the column is type and
// code.

#pragma once

#include <string>
#include <string_view>

#include "nf/firewall/rule_reader.h"

namespace penstock::firewall {

[[nodiscard]] Result<Read<classify::Ruleset>> read_classbench(std::string_view text, const std::string& file,
                                                              const ReadOptions& options);

}  // namespace penstock::firewall
