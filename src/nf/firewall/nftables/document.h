// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Reads the frame of libnftables-json(5), {"nftables": [{"rule": {…}}, …]}, one object after the other, so that only
// one of them is in memory.

#pragma once

#include <cstddef>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "base/error.h"

namespace penstock::firewall::nftables {

using Json = nlohmann::json;

/// The deepest nesting of values.
inline constexpr std::size_t kMostNesting = 64;

/// Whether the text is a JSON object, and so none of the other formats.
[[nodiscard]] bool is_json(std::string_view text) noexcept;

[[nodiscard]] std::string json_text(const Json& value);
/// The text of a member; empty if there is none.
[[nodiscard]] std::string_view text_of(const Json& value, const char* member);

/// Calls `visit` with the index, the kind ("rule") and the value of each object. Stops if it returns false. Errors for
/// a text that is not such a document, for a key that an object has twice, and for an object of more than `most_values`
/// values.
[[nodiscard]] Result<void> visit_objects(
    std::string_view text, const std::string& file, std::size_t most_values,
    const std::function<bool(std::size_t index, const std::string& kind, const Json& value)>& visit);

}  // namespace penstock::firewall::nftables
