// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// A function's programs and actions on a device, shared by all its GPU stages there. Owns the device memory; immutable.

#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>

#include "gpu/stage.h"
#include "nf/filter/code/device_matcher.h"
#include "nf/filter/code/machine_code.h"
#include "nf/filter/filter_core.h"
#include "nf/filter/filter_list.h"

namespace penstock::filter {

/// How filters run on a GPU. automatic: generated code on devices of compute capability 9.0 (H100, H200), where it has
/// been tested, if NVRTC is there and takes the programs; else the interpreter.
enum class GpuEngine : std::uint8_t { automatic, interpreter, generated };

/// "auto", "interpreter" or "generated".
[[nodiscard]] GpuEngine gpu_engine_of(std::string_view name);
[[nodiscard]] std::string_view name(GpuEngine engine) noexcept;

class DeviceTables {
 public:
  /// For the current device. `code`: of the programs for Ethernet, or null to interpret them; programs for other link
  /// types are always interpreted. Throws CudaError.
  DeviceTables(const FilterList& list, MachineCode* code);
  /// Interpreted, from tables on the host with so many instructions. Those of another process must have been checked.
  DeviceTables(const FilterView& host, std::size_t instructions);
  DeviceTables(const DeviceTables&) = delete;
  DeviceTables& operator=(const DeviceTables&) = delete;
  ~DeviceTables();

 private:
  friend class FilterGpuStage;
  struct Parts;
  std::unique_ptr<const Parts> parts_;
};

/// Borrows the tables, which must be on the current device. `findings_bytes` per packet hold the bitmap. A batch has at
/// most `batch_packets`. Throws CudaError.
[[nodiscard]] std::unique_ptr<gpu::GpuStage> make_filter_gpu_stage(const DeviceTables& tables,
                                                                   std::uint32_t findings_bytes,
                                                                   std::uint32_t batch_packets);

}  // namespace penstock::filter
