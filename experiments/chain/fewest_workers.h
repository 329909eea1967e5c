// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <string>

#include "experiments/figure.h"

namespace penstock::experiments {

/// For each chain and number of GPUs: the highest rate, and the fewest workers that reach 95 % of what PCIe carries to
/// so many GPUs of this host at once, and of that rate. Empty if the record has no points of `sweep=gpus`.
[[nodiscard]] std::string fewest_workers(const Record& record, Style style);

}  // namespace penstock::experiments
