// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The network function `dscp`: sets the differentiated services code point of IPv4 and IPv6 packets.

#pragma once

#include <cstdint>
#include <memory>

#include "dscp_core.h"
#include "function/network_function.h"
#include "gpu/stage.h"

namespace dscp {

/// What a program passes to Penstock: the function's name in chain files, its parameters, and its factory.
[[nodiscard]] const penstock::function::NfKind& dscp_kind();

/// `value`: 0..63.
[[nodiscard]] std::unique_ptr<penstock::function::NetworkFunction> make_dscp(std::uint8_t value);

/// Defined in dscp.cu, or in no_cuda.cc for a build without CUDA.
[[nodiscard]] std::unique_ptr<penstock::gpu::GpuStage> make_dscp_gpu_stage(const DscpCore& core);

}  // namespace dscp
