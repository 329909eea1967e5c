// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Checks of an output file before anything is written to it.

#pragma once

#include <span>
#include <string>
#include <string_view>

#include "base/error.h"

namespace penstock {

/// Refuses a file name with a compression suffix (".gz", ".xz", …) that is not listed in `written`, because the content
/// would not match the name.
[[nodiscard]] Result<void> check_compression(std::string_view path, std::span<const std::string_view> written = {});

/// Whether another process holds the lock (flock) that logs and captures hold while they are being written. Does not
/// change the file. False if the file does not exist or cannot be opened.
[[nodiscard]] bool is_being_written(const std::string& path);

/// Checks that writing over the file destroys nothing but an earlier output: it is new, empty, a pipe or a device, or
/// `is_kind` knows it by its beginning. `kind` is for messages: "a capture". Links are followed.
[[nodiscard]] Result<void> check_replaceable(const std::string& path, std::string_view kind,
                                             bool (*is_kind)(std::string_view beginning));

}  // namespace penstock
