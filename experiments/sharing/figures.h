// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <vector>

#include "experiments/figure.h"

namespace penstock::experiments {

[[nodiscard]] const std::vector<Figure>& sharing_figures();

}  // namespace penstock::experiments
