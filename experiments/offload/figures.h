// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The figures of the experiment `offload`.

#pragma once

#include <vector>

#include "experiments/figure.h"

namespace penstock::experiments {

/// Alonistioti's figures 3 to 6; those by batch size once per engine.
[[nodiscard]] const std::vector<Figure>& offload_figures();

}  // namespace penstock::experiments
