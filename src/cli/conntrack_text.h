// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Connections as text, in the form of conntrack(8), for scripts and eyes that know it.

#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace penstock::cli {

// All throw nlohmann::json::exception if the JSON lacks what this version of the program expects.

/// A line of `conntrack list`.
[[nodiscard]] std::string connection_line(const nlohmann::ordered_json& connection);
/// A line of `conntrack events`; not for kind `lost`.
[[nodiscard]] std::string connection_event_line(const nlohmann::ordered_json& event);
/// Of `conntrack count`.
[[nodiscard]] std::string connection_count_text(const nlohmann::ordered_json& result);

}  // namespace penstock::cli
