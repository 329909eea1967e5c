// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Checks whether the files that a chain names can be used together: an output must be different from all other files,
// because a run would otherwise destroy its own input.

#pragma once

#include <span>
#include <string>

#include "base/error.h"
#include "base/parameter.h"

namespace penstock::config {

/// "chain.yaml:3", or just the file if there is no line.
[[nodiscard]] std::string place_text(const Place& place);

[[nodiscard]] bool writes_stdout(std::span<const Parameters::File> files);
[[nodiscard]] Errors file_conflicts(std::span<const Parameters::File> files);

}  // namespace penstock::config
