// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The stages on GPUs (firewall.cu, translating.cu).

#pragma once

#include <memory>

#include "classify/device_tables.h"
#include "gpu/stage.h"

namespace penstock::firewall {

/// Borrows the tables, which must be on the current device. `tracks`: with states of conntrack::PacketConnection.
[[nodiscard]] std::unique_ptr<gpu::GpuStage> make_firewall_gpu_stage(const classify::DeviceTables& tables, bool tracks);
/// The same for a firewall that translates addresses, with states of TranslatingState.
[[nodiscard]] std::unique_ptr<gpu::GpuStage> make_translating_gpu_stage(const classify::DeviceTables& tables);

}  // namespace penstock::firewall
