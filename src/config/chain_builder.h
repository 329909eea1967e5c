// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Builds a chain from what its file says, and checks that the parts fit together.

#pragma once

#include "base/error.h"
#include "config/chain_description.h"
#include "config/chain_file.h"

namespace penstock::config {

/// Reports the mistakes of the description too, all in the order of the file.
[[nodiscard]] Result<LoadedChain> build_chain(ChainDescription description, const LoadOptions& options);

}  // namespace penstock::config
