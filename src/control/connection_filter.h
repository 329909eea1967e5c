// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Which connections a `conntrack` request is about, and connections as JSON (docs/control.md).

#pragma once

#include <array>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "base/error.h"
#include "conntrack/filter.h"
#include "control/request.h"

namespace penstock::control {

/// What a request's `state` may be: the states of TCP, and two about any protocol, in Linux's words.
inline constexpr auto kConnectionStates =
    std::to_array<std::string_view>({"SYN_SENT", "SYN_RECV", "ESTABLISHED", "FIN_WAIT", "CLOSE_WAIT", "LAST_ACK",
                                     "TIME_WAIT", "CLOSE", "SYN_SENT2", "ASSURED", "UNREPLIED"});

/// Errors name the member of the request.
[[nodiscard]] Result<conntrack::Filter> filter_of(const Request& request);

/// `function`: that tracks it, by its name in the report.
[[nodiscard]] Json to_json(const conntrack::Record& record, const std::string& function);

}  // namespace penstock::control
