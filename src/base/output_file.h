// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// What can be known of an output before it is written.

#pragma once

#include <span>
#include <string>
#include <string_view>

#include "base/error.h"

namespace penstock {

/// Refuses a name with the suffix of a compression (".gz", ".xz", …) that is not one of `written`: the content would
/// not be what the name promises.
[[nodiscard]] Result<void> check_compression(std::string_view path, std::span<const std::string_view> written = {});

/// Whether somebody holds the lock (flock) that logs and captures have while they are written. The file is not changed;
/// false if there is no such file, or if it cannot be opened.
[[nodiscard]] bool is_being_written(const std::string& path);

}  // namespace penstock
