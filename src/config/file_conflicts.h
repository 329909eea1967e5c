// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Whether the files that a chain names can all be used at once: an output must be no other file of the chain, or a run
// would destroy its own input.

#pragma once

#include <span>
#include <string>

#include "base/error.h"
#include "base/parameter.h"

namespace penstock::config {

/// "chain.yaml:3", or without the line if there is none.
[[nodiscard]] std::string place_text(const Place& place);

[[nodiscard]] bool writes_stdout(std::span<const Parameters::File> files);
[[nodiscard]] Errors file_conflicts(std::span<const Parameters::File> files);

}  // namespace penstock::config
