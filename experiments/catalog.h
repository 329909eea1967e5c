// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The list of experiments.

#pragma once

#include <span>
#include <string_view>

#include "experiments/experiment.h"

namespace penstock::experiments {

[[nodiscard]] std::span<const Experiment* const> experiments();

/// Null for an unknown name.
[[nodiscard]] const Experiment* find_experiment(std::string_view name);

}  // namespace penstock::experiments
