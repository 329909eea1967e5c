// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <vector>

#include "experiment/figure.h"

namespace penstock::experiment {

[[nodiscard]] const std::vector<Figure>& detection_figures();

}  // namespace penstock::experiment
