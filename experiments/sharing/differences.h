// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// What the experiment `sharing` does otherwise than the paper, and why.

#pragma once

#include "experiments/differences.h"

namespace penstock::experiments {

[[nodiscard]] const Differences& sharing_differences();

}  // namespace penstock::experiments
