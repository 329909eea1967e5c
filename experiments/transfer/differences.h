// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// What the experiment `transfer` does otherwise than the papers, and why.

#pragma once

#include "experiments/differences.h"

namespace penstock::experiments {

[[nodiscard]] const Differences& transfer_differences();

}  // namespace penstock::experiments
