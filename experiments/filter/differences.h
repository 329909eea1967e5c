// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// What the experiment `filter` does otherwise than the paper, and why.

#pragma once

#include "experiments/differences.h"

namespace penstock::experiments {

[[nodiscard]] const Differences& filter_differences();

}  // namespace penstock::experiments
