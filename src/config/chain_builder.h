// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Builds a chain from its description, and checks that the parts fit together.

#pragma once

#include "base/error.h"
#include "config/chain_description.h"
#include "config/chain_file.h"

namespace penstock::config {

/// Applies the overrides to the file and reads it. The description has mistakes of its own.
[[nodiscard]] Result<ChainDescription> describe(Result<YamlFile> file, const LoadOptions& options);

/// Also reports the mistakes of the description. All mistakes are in the order of the file.
[[nodiscard]] Result<LoadedChain> build_chain(ChainDescription description, const LoadOptions& options);

}  // namespace penstock::config
