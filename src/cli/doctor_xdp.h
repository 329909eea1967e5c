// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The part of `penstock doctor` about AF_XDP: what a port `af_xdp` can do on each Ethernet interface. Pure.

#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string_view>
#include <vector>

#include "cli/finding.h"
#include "port/live/xdp_support.h"

namespace penstock::cli {

/// `kernel`: its release, as uname says.
void examine_xdp(const std::vector<port::XdpInterface>& interfaces, std::string_view kernel,
                 std::vector<Finding>& findings);
/// The same facts for programs. What is unknown is null.
[[nodiscard]] nlohmann::ordered_json interfaces_json(const std::vector<port::XdpInterface>& interfaces);

}  // namespace penstock::cli
