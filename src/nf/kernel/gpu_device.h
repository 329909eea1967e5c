// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// A GPU that runs a kernel, in the context of this process.

#pragma once

#include <memory>

#include "base/error.h"
#include "nf/kernel/kernel.h"
#include "nf/kernel/launcher.h"

namespace penstock::kernel {

/// Loads the module, sets its variables and copies the table.
[[nodiscard]] Result<std::unique_ptr<Device>> make_gpu_device(const Program& program);

}  // namespace penstock::kernel
