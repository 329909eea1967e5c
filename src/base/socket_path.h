// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Checks of the path of a unix socket before anything is created.

#pragma once

#include <string>

#include "base/error.h"

namespace penstock {

/// Whether this process could listen at `path`, as far as can be known without changing anything: the path can be one
/// of a socket, and new files can be created in its folder.
[[nodiscard]] Result<void> check_socket_path(const std::string& path);

/// The folder of a path without a slash is the working directory, ".".
[[nodiscard]] std::string folder_of_socket(const std::string& path);

}  // namespace penstock
