// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Cubins of kernels of a third party, which the build has compiled.

#pragma once

#include <string_view>

namespace penstock::on_gpu {

/// examples/third_party/drop_port.cu, and faulty_kernels.cu. For GPUs of compute capability 8.x, or 9.0.
[[nodiscard]] std::string_view drop_port_module(int compute_major);
[[nodiscard]] std::string_view faulty_module(int compute_major);

}  // namespace penstock::on_gpu
