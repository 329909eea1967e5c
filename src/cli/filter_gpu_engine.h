// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The engines of `penstock filter` that run on a GPU.

#pragma once

#include <memory>
#include <vector>

#include "base/error.h"
#include "cli/filter_engines.h"
#include "nf/filter/bpf/program.h"
#include "nf/filter/code/device_matcher.h"

namespace penstock::cli {

/// On the first GPU. With `returns`, the engine can only `run`; without, it can only `match`. If the GPU fails later,
/// the CPU goes on.
[[nodiscard]] Result<std::unique_ptr<FilterEngine>> make_gpu_filter_engine(filter::DeviceEngine engine,
                                                                           std::vector<filter::Program> programs,
                                                                           bool returns);

}  // namespace penstock::cli
