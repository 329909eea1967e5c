// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// What the experiment `forwarding` does otherwise than the RFC, and why.

#pragma once

#include "experiments/differences.h"

namespace penstock::experiments {

[[nodiscard]] const Differences& forwarding_differences();

}  // namespace penstock::experiments
