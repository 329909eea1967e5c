// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// What `penstock proxy status` prints. A proxy's answer is checked: another service, or another release, may be at its
// socket.

#pragma once

#include <string>

#include "base/error.h"

namespace penstock::cli {

/// The tenants, from the JSON that the proxy at `path` has answered.
[[nodiscard]] Result<std::string> status_table(const std::string& path, const std::string& text);
/// The same text, if it is metrics of a proxy.
[[nodiscard]] Result<std::string> check_metrics(const std::string& path, const std::string& text);

}  // namespace penstock::cli
