// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// `penstock ctl conntrack save`: the connections of a run, as it would write them at its end.

#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <tl/expected.hpp>

#include "control/client.h"

namespace penstock::cli {

/// Kind of a NoResult: the file cannot be written.
inline constexpr const char* kNotWritable = "not_writable";

/// Asks with this request and writes the file. The result as it came. An existing file is replaced as a whole, if it is
/// one of saved connections. Throws nlohmann::json::exception if the answer is of another version of the program.
[[nodiscard]] tl::expected<nlohmann::ordered_json, control::NoResult> save_connections(
    control::Client& client, const nlohmann::ordered_json& request, const std::string& file);

}  // namespace penstock::cli
